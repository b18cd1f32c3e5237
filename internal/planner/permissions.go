package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Permissions are the changes to the permissions of a package's runtime.
type Permissions struct {
	// Added and Removed are the permissions that the runtime gains and loses, regardless of how
	// rules are written.
	Added   []rbacv1.PolicyRule `json:"added,omitempty"`
	Removed []rbacv1.PolicyRule `json:"removed,omitempty"`
	// NeedsApproval are the permissions that a user must approve: those that amount to control of the cluster and, if
	// every increase needs approval, all added ones. The package waits until they are approved.
	NeedsApproval []rbacv1.PolicyRule `json:"needsApproval,omitempty"`
	// Foreign are the requested permissions to write objects of API groups that neither the package nor its dependencies
	// define, among the added ones.
	Foreign []rbacv1.PolicyRule `json:"foreign,omitempty"`
	// CompositeRoles are the names of the ClusterRoles that the manager creates for users and the composition engine, from
	// the XRDs of a Configuration. It creates none if it does not manage permissions or lacks the permissions in them.
	CompositeRoles []string `json:"compositeRoles,omitempty"`

	// requestedForeign is like Foreign, also with the API groups of the dependencies.
	requestedForeign []rbacv1.PolicyRule
}

// markForeign adds to the permissions in the plan those to write objects that neither the package itself nor one of its
// dependencies defines: of the planned package, and of the packages that are installed or moved for it.
func (pl *planning) markForeign(ctx context.Context, s *clusterState, p v1.Package, changes []graph.Change, out *Plan) {
	after := graph.New(graph.After(s.graph.Nodes(), changes), s.place)
	mark := func(repository string, permissions *Permissions) {
		if permissions != nil {
			permissions.Foreign = pl.foreign(ctx, s, after, repository, permissions.requestedForeign, out)
		}
	}
	mark(oci.RepositoryName(p.PackageSpec().Package), out.Permissions)
	for i, c := range changes {
		mark(c.To.Repository, out.AddedPackages[i].Permissions)
	}
}

// foreign returns the rules without the API groups that the dependencies of a package define. It reads their content
// only while rules are left.
func (pl *planning) foreign(
	ctx context.Context, s *clusterState, g *graph.Graph, repository string, rules []rbacv1.PolicyRule, out *Plan,
) []rbacv1.PolicyRule {
	reached := []string{g.Name(repository)}
	for i := 0; i < len(reached) && len(rules) > 0; i++ {
		n, ok := g.Find(reached[i])
		if !ok {
			continue
		}
		for _, d := range n.Dependencies {
			if !slices.Contains(reached, d.Package) {
				reached = append(reached, d.Package)
			}
		}
		if i == 0 {
			continue // The groups of the package itself are not in the rules.
		}
		groups, err := pl.groupsOf(ctx, s, n)
		if err != nil {
			out.warn(fmt.Sprintf("The API groups that %s defines are not known: %v.", n.Reference(), err))
		}
		rules = rbac.Foreign(rules, groups)
	}
	return rules
}

// groupsOf returns the API groups of the kinds that a package defines.
func (pl *planning) groupsOf(ctx context.Context, s *clusterState, n graph.Node) ([]string, error) {
	pkg := s.contents.Known[n.Repository]
	if pkg == nil {
		installed, err := s.installed(ctx, n.Kind, n.Name)
		if err == nil {
			pkg, err = pl.readCurrent(ctx, installed)
		}
		if err != nil {
			return nil, err
		}
	}
	objects, err := desired.Of(pkg, desired.Options{})
	if err != nil {
		return nil, err
	}
	return groupsIn(objects.Defined()), nil
}

// groupsIn returns the API groups of resources.
func groupsIn(resources []schema.GroupResource) []string {
	groups := make([]string, len(resources))
	for i, r := range resources {
		groups[i] = r.Group
	}
	return groups
}

// permissionInput returns the input for the permissions of a revision, like the manager.
func (pl *planning) permissionInput(
	ctx context.Context, loader permission.Loader, s *clusterState, p v1.Package, rev v1.PackageRevision,
	pkg *xpkg.Package, objects *desired.Objects,
) (rbac.Input, error) {
	in, err := loader.Input(ctx, rev, pkg, objects)
	if err == nil && !s.hasRuntime(p, pkg) {
		in = in.WithoutRuntime()
	}
	return in, err
}

// compositeRoles returns the names of the roles of composite resources that do not exist yet, sorted.
func (pl *planning) compositeRoles(ctx context.Context, objects *desired.Objects) ([]string, error) {
	composites, err := objects.Composites()
	if err != nil {
		return nil, err
	}
	var refs []plan.Ref
	for _, c := range composites {
		for _, role := range rbac.DeriveComposite(c) {
			refs = append(refs, desired.RoleRef("ClusterRole", "", role.Name))
		}
	}
	live, err := pl.Cluster.Metadata(ctx, refs)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ref := range refs {
		if _, exists := live[ref]; !exists {
			out = append(out, ref.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// permissionLoader returns a loader with the configuration of the manager: the Lock announces
// whether runtimes are confined to their namespace.
func (pl *planning) permissionLoader(s *clusterState) permission.Loader {
	return permission.Loader{
		Reader: pl.Reader, Namespace: pl.Namespace, ClusterScoped: pl.Cluster.ClusterScoped,
		Namespaced: s.lock.Annotations[permission.AnnotationScope] == permission.ScopeNamespaced,
	}
}

// permissionsBefore returns the input for the permissions of the running runtime. It grants none if
// no runtime has permissions.
func (pl *planning) permissionsBefore(
	ctx context.Context, loader permission.Loader, s *clusterState, p v1.Package, t revision.Transition,
) (rbac.Input, error) {
	rev := permittedRevision(t.Before)
	if rev == nil {
		return rbac.Input{Kind: rbac.Configuration}, nil
	}
	pkg, _, err := pl.packages().ReadRevision(ctx, rev)
	if err != nil {
		return rbac.Input{}, err
	}
	objects, err := pl.packages().Desired(pkg, rev, activeKinds(rev))
	if err != nil {
		return rbac.Input{}, err
	}
	return pl.permissionInput(ctx, loader, s, p, rev, pkg, objects)
}

// activeKinds returns the kinds that a revision has activated, or nil for all if its status lists no objects.
func activeKinds(rev v1.PackageRevision) *activation.Selection {
	refs := revision.Objects(rev)
	if len(refs) == 0 {
		return nil
	}
	out := &activation.Selection{Reasons: map[string][]activation.Reason{}}
	for _, ref := range refs {
		if ref.Kind == plan.DefinitionKind {
			out.Reasons[ref.Name] = []activation.Reason{activation.Kept}
		}
	}
	return out
}

// permittedRevision returns the revision whose runtime has permissions, the last activated one that
// does not wait for approval, or nil.
func permittedRevision(revisions []v1.PackageRevision) v1.PackageRevision {
	var last v1.PackageRevision
	for _, rev := range revisions {
		spec := rev.RevisionSpec()
		if spec.Revision > 0 && len(rev.RevisionStatus().UnapprovedPermissions) == 0 &&
			(last == nil || spec.Revision > last.RevisionSpec().Revision) {
			last = rev
		}
	}
	return last
}

// warnOfBindings warns of bindings of users that name the ServiceAccount of the running revision, which the new one
// does not use: unless a runtime configuration names it, each revision has a ServiceAccount of its own. A client that
// may not list bindings gets no warning.
func (pl *planning) warnOfBindings(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, t revision.Transition, configs *runtimeConfigs,
	out *Plan,
) {
	if configs == nil || t.Activate != t.Current.GetName() || !s.hasRuntime(p, pkg) {
		return
	}
	was, err := pl.account(s, s.live, pkg, configs.running, configs.was)
	if err != nil {
		return
	}
	is, err := pl.account(s, p, pkg, t.Current, configs.is)
	if err != nil || was == is {
		return
	}
	everywhere, within := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	if pl.Reader.List(ctx, everywhere) != nil || pl.Reader.List(ctx, within) != nil {
		return
	}
	var names []string
	for _, b := range everywhere.Items {
		if pl.bindsAccount(&b, b.Subjects, was) && !pl.bindsAccount(&b, b.Subjects, is) {
			names = append(names, "ClusterRoleBinding "+b.Name)
		}
	}
	for _, b := range within.Items {
		if pl.bindsAccount(&b, b.Subjects, was) && !pl.bindsAccount(&b, b.Subjects, is) {
			names = append(names, "RoleBinding "+b.Namespace+"/"+b.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	grant := "grant"
	if len(names) == 1 {
		grant = "grants"
	}
	out.warn(fmt.Sprintf("The runtime loses the permissions that %s %s to the ServiceAccount %s: the new revision uses the ServiceAccount %s. Add it to the subjects, or name one ServiceAccount for all revisions in the serviceAccountTemplate of a DeploymentRuntimeConfig.",
		wording.Few(names, 3, ", "), grant, was, is))
}

// bindsAccount reports whether a binding that no package owns grants a role to a ServiceAccount of the namespace of the
// manager.
func (pl *planning) bindsAccount(binding metav1.Object, subjects []rbacv1.Subject, account string) bool {
	owned := slices.ContainsFunc(binding.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(r.APIVersion, "/")
		return group == v1.GroupVersion.Group
	})
	return !owned && slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == pl.Namespace && s.Name == account
	})
}
