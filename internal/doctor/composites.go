package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// XRD is a CompositeResourceDefinition of a cluster with Crossplane core.
type XRD struct {
	Name, Group string
	// WithoutRoles reports that one of its roles does not exist or lacks permissions.
	WithoutRoles bool
	// Ungranted are the permissions that the manager would need to write the roles, or none if it has them.
	Ungranted []rbacv1.PolicyRule
	// Denied reports that core lacks the permissions in spite of the roles.
	Denied bool
}

// readXRDs reads the XRDs and their roles if a core runs.
func (r Reader) readXRDs(ctx context.Context, f *Facts) error {
	account, err := r.coreAccount(ctx, f)
	if err != nil || account == (types.NamespacedName{}) {
		return err
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinitionList",
	})
	if err := r.Client.List(ctx, all); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("list XRDs: %w", err)
	}
	var roles rbacv1.ClusterRoleList
	if err := r.Client.List(ctx, &roles); err != nil {
		return fmt.Errorf("list ClusterRoles: %w", err)
	}
	live := map[string]rbacv1.ClusterRole{}
	for _, role := range roles.Items {
		live[role.Name] = role
	}
	for i := range all.Items {
		if all.Items[i].GetDeletionTimestamp() != nil {
			continue
		}
		xrd, err := r.readXRD(ctx, &all.Items[i], live, account)
		if err != nil {
			return err
		}
		f.XRDs = append(f.XRDs, xrd)
	}
	return nil
}

// coreAccount returns the ServiceAccount of a core beside the manager, or the zero value. A local core has no
// Deployment.
func (r Reader) coreAccount(ctx context.Context, f *Facts) (types.NamespacedName, error) {
	for _, core := range f.Cores {
		if core.Runs {
			return core.Account, nil
		}
	}
	if !f.isLocal() {
		return types.NamespacedName{}, nil
	}
	fenced, err := crossplane.FencedAccounts(ctx, r.Client)
	if err != nil || len(fenced) == 0 {
		return types.NamespacedName{}, err
	}
	return fenced[0], nil
}

// isLocal reports whether the manager of `xpkg up` works on the cluster.
func (f Facts) isLocal() bool {
	return slices.ContainsFunc(
		f.Leases, func(l Lease) bool { return l.Holder == leader.LocalIdentity && f.Now.Before(l.Expires) },
	)
}

func (r Reader) readXRD(
	ctx context.Context, o *unstructured.Unstructured, live map[string]rbacv1.ClusterRole, core types.NamespacedName,
) (XRD, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return XRD{}, err
	}
	c, err := desired.ReadComposite(o.GetName(), raw)
	if err != nil {
		return XRD{}, err
	}
	xrd := XRD{Name: c.Name, Group: c.Group}
	roles := rbac.DeriveComposite(c)
	if len(roles) == 0 {
		return xrd, nil // Core cannot define a CRD of this name.
	}
	xrd.WithoutRoles = slices.ContainsFunc(
		roles, func(want rbacv1.ClusterRole) bool { return !rbac.Fulfills(live[want.Name], want) },
	)
	manager := types.NamespacedName{Namespace: r.Namespace, Name: bootstrap.Name}
	switch {
	case !xrd.WithoutRoles:
		may, err := r.may(ctx, core, c)
		xrd.Denied = !may
		return xrd, err
	case rbac.Reserved(schema.GroupResource{Group: c.Group, Resource: c.Plural}):
	default:
		may, err := r.may(ctx, manager, c)
		if err != nil || may {
			return xrd, err
		}
		xrd.Ungranted = rbac.Set{ClusterRoles: roles}.Everywhere()
	}
	return xrd, nil
}

// may reports whether a ServiceAccount has all permissions on a composite resource.
func (r Reader) may(ctx context.Context, account types.NamespacedName, c rbac.Composite) (bool, error) {
	return r.review(ctx, account, authorizationv1.ResourceAttributes{
		Group: c.Group, Resource: c.Plural, Verb: rbacv1.VerbAll,
	})
}

func checkXRDs(name string, f Facts) []Finding {
	var ungranted, missing, denied []XRD
	for _, xrd := range f.XRDs {
		switch {
		case len(xrd.Ungranted) > 0 && len(f.Escalation) == 0 && !f.isLocal():
			ungranted = append(ungranted, xrd)
		case xrd.WithoutRoles:
			missing = append(missing, xrd)
		case xrd.Denied:
			denied = append(denied, xrd)
		}
	}
	var out []Finding
	if len(ungranted) > 0 {
		out = append(out, fail(name, ErrUnhealthy, "Crossplane core cannot establish "+namesOf(ungranted)+
			": the manager may not grant the roles", f.fixOfUngranted(ungranted)))
	}
	if len(missing) > 0 {
		out = append(out, fail(name, ErrUnhealthy, "Crossplane core cannot establish "+namesOf(missing)+": roles are missing",
			fmt.Sprintf("See the events in `kubectl describe compositeresourcedefinition %s`. If there are none, restart the manager with %s.",
				missing[0].Name, wording.RestartManager())))
	}
	if len(denied) > 0 {
		out = append(out, fail(name,
			ErrUnhealthy, "Crossplane core cannot establish "+namesOf(denied)+": its ClusterRole does not collect the roles",
			"Set rbacManager.deploy=true and rbacManager.replicas=0 in the chart of Crossplane, as in the values that `xpkg bootstrap --beside-core --core-values` prints."))
	}
	switch {
	case len(out) > 0:
		return out
	case len(f.XRDs) == 0:
		return []Finding{ok(name, "Crossplane core has no XRD to establish")}
	}
	return []Finding{ok(name, "Crossplane core has the roles of "+wording.Count(len(f.XRDs), "XRD"))}
}

func namesOf(all []XRD) string {
	var names []string
	for _, xrd := range all {
		names = append(names, xrd.Name)
	}
	return wording.Few(names, 3, ", ")
}

// fixOfUngranted returns the remedy for roles that the manager may not grant.
func (f Facts) fixOfUngranted(all []XRD) string {
	var rules []rbacv1.PolicyRule
	var groups []string
	for _, xrd := range all {
		rules, groups = append(rules, xrd.Ungranted...), append(groups, xrd.Group)
	}
	slices.Sort(groups)
	fix := fmt.Sprintf("Run `xpkg bootstrap --apply --package-group %s` with the flags of the installation",
		strings.Join(slices.Compact(groups), " --package-group "))
	manager := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: f.Namespace, Name: bootstrap.Name}
	text, err := rbac.Lack{Everywhere: rules}.YAML(manager)
	if err != nil {
		return fix + "."
	}
	return fix + ", or apply this manifest as an administrator:\n\n" + string(text)
}
