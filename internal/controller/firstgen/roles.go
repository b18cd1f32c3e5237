package firstgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// coreResources are the resources of the core group that every controller of the first generation may use in its
// namespace.
var coreResources = []string{"configmaps", "events", "secrets"}

// claimGroups are the groups of the claims of the first generation, such as MySQLInstance, on which packages depend.
var claimGroups = []string{
	"cache.crossplane.io", "compute.crossplane.io", "database.crossplane.io", "storage.crossplane.io",
	"workload.crossplane.io",
}

// rulesOf returns the permissions of the controller of a Package: all verbs for the resources that it defines and
// requires, and for ConfigMaps, Events and Secrets, and its further requests. It fails with PackagePermissionRefused
// for requests beyond custom resources.
func rulesOf(p *packagesv1alpha1.Package, defined, required []schema.GroupResource) ([]rbacv1.PolicyRule, error) {
	all := []string{rbacv1.VerbAll}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: slices.Clone(coreResources), Verbs: all}}
	for _, d := range defined {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{d.Group}, Resources: []string{d.Resource, d.Resource + "/status", d.Resource + "/finalizers"},
			Verbs: all,
		})
	}
	for _, d := range required {
		resources := []string{d.Resource, d.Resource + "/status"}
		if d.Resource == rbacv1.ResourceAll {
			resources = []string{rbacv1.ResourceAll}
		}
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{d.Group}, Resources: resources, Verbs: all})
	}
	rules = append(rules, p.Spec.Permissions.Rules...)
	for _, rule := range rules {
		if reason := refusedRule(rule); reason != "" {
			return nil, ErrPermissions.New(nil, "the Package %s requests %s", p.Name, reason)
		}
	}
	return rules, nil
}

// refusedRule returns the part of a rule that a Package must not request, or "".
func refusedRule(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return "URLs of the API server"
	}
	for _, verb := range rule.Verbs {
		if verb == "escalate" || verb == "bind" || strings.HasPrefix(verb, "impersonate") {
			return "the verb " + verb
		}
	}
	if readsDefinitions(rule) {
		return ""
	}
	for _, group := range rule.APIGroups {
		if group == "" &&
			!slices.ContainsFunc(rule.Resources, func(r string) bool { return !slices.Contains(coreResources, r) }) {
			continue
		}
		if slices.Contains(claimGroups, group) {
			continue
		}
		if group == rbacv1.APIGroupAll || rbac.Reserved(schema.GroupResource{Group: group}) {
			return fmt.Sprintf(
				"%s of the API group %q, which belongs to Kubernetes, to Crossplane or to the package manager",
				strings.Join(rule.Resources, ", "), group,
			)
		}
		if of := (rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: rule.Resources, Verbs: rule.Verbs,
		}); rbac.Escalates(of) {
			return rbac.DescribeEscalation(of)
		}
	}
	return ""
}

// RoleName returns the name of the role of the Package with a name in its namespace.
func RoleName(name string) string { return "crossplane:package:" + name + ":system" }

// clusterRoleName returns the name of the role of a Package in the whole cluster. Namespaces contain no colons.
func clusterRoleName(p *packagesv1alpha1.Package) string {
	return "crossplane:package:" + p.Namespace + ":" + p.Name + ":system"
}

// ensureRoles grants a controller its permissions, in its namespace unless the Package has the scope Cluster.
func (r *Packages) ensureRoles(
	ctx context.Context, p *packagesv1alpha1.Package, by runtime.Runtime, w runtime.Workload, rules []rbacv1.PolicyRule,
) error {
	if r.Held == nil {
		return nil
	}
	account, err := by.ServiceAccount(w)
	if err != nil {
		return err
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: account}}
	if isClusterScoped(p) {
		if err := r.ensureClusterRoles(ctx, p, rules, subjects); err != nil {
			return err
		}
		return r.deleteRoles(ctx, p)
	}
	if err := r.deleteClusterRoles(ctx, p); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: RoleName(p.Name)}
	set := rbac.Set{
		Roles: []rbacv1.Role{{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta,
			Rules: rules,
		}},
		RoleBindings: []rbacv1.RoleBinding{{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: subjects,
		}},
	}
	roles, err := desired.Roles(set)
	if err != nil {
		return err
	}
	live, err := r.API.Cluster.Metadata(ctx, roles.Refs())
	if err != nil {
		return err
	}
	for ref, o := range live {
		if !slices.ContainsFunc(
			o.Owners, func(r metav1.OwnerReference) bool { return r.Kind == packagesv1alpha1.PackageKind && r.Name == p.Name },
		) {
			return ErrProviderExists.New(nil, "the %s %s exists, and this object did not create it", ref.Kind, ref.Name).
				WithDo(
					"Run `kubectl delete --namespace %s %s %s`, or give this object another name.", p.Namespace,
					strings.ToLower(ref.Kind), ref.Name,
				)
		}
	}
	changes := plan.Establish(roles.Desired(), live, nil, plan.Requester{Revision: ownerOf(p)})
	if len(changes.Changes) == 0 && len(changes.Refusals) == 0 {
		return nil
	}
	if err := r.Held.Check(ctx, set, p.Namespace); err != nil {
		return err
	}
	_, err = r.API.Cluster.Run(ctx, changes, roles.Content)
	switch {
	case errors.Is(err, apply.ErrForbidden):
		return r.Held.Explain(ctx, set, p.Namespace, err)
	case errors.Is(err, apply.ErrMoved):
		return errors.Join(requeue.ErrStale, err)
	}
	return err
}

// ensureClusterRoles grants a controller its permissions in the whole cluster. The roles have no owner, because a
// Package has a namespace: a finalizer keeps the Package until they are deleted.
func (r *Packages) ensureClusterRoles(
	ctx context.Context, p *packagesv1alpha1.Package, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject,
) error {
	meta := metav1.ObjectMeta{Name: clusterRoleName(p), Annotations: map[string]string{
		state.AnnotationInstalledBy: packagesv1alpha1.PackageKind + "/" + p.Namespace + "/" + p.Name,
	}}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: subjects,
	}
	if err := r.Held.Check(ctx, rbac.Set{ClusterRoles: []rbacv1.ClusterRole{*role}}, p.Namespace); err != nil {
		return err
	}
	if controllerutil.AddFinalizer(p, FinalizerProvider) {
		changed := p.DeepCopy()
		if err := r.API.Client.Update(ctx, changed); err != nil {
			return fmt.Errorf("write the finalizer of %s: %w", p.Name, err)
		}
		p.ResourceVersion = changed.ResourceVersion
		r.API.Status.Writes.Wrote(p)
	}
	liveRole, liveBinding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	return cmp.Or(
		r.ensureClusterObject(
			ctx, role, liveRole, func() bool { return equality.Semantic.DeepEqual(liveRole.Rules, role.Rules) },
		),
		r.ensureClusterObject(ctx, binding, liveBinding, func() bool {
			return equality.Semantic.DeepEqual(liveBinding.Subjects, binding.Subjects)
		}),
	)
}

// ensureClusterObject creates or updates an object. It fails with ProviderNotOwned if another client created the
// object.
func (r *Packages) ensureClusterObject(ctx context.Context, want, live client.Object, same func() bool) error {
	err := r.API.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return r.API.Client.Create(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("read the role %s: %w", want.GetName(), err)
	}
	if live.GetAnnotations()[state.AnnotationInstalledBy] != want.GetAnnotations()[state.AnnotationInstalledBy] {
		return ErrProviderExists.New(nil, "the role %s exists, and this object did not create it", want.GetName())
	}
	if same() {
		return nil
	}
	want.SetResourceVersion(live.GetResourceVersion())
	return r.API.Client.Update(ctx, want)
}

// deleteClusterRoles deletes the roles of a Package that has, or had, the scope Cluster, and removes its finalizer.
func (r *Packages) deleteClusterRoles(ctx context.Context, p *packagesv1alpha1.Package) error {
	if !controllerutil.ContainsFinalizer(p, FinalizerProvider) {
		return nil
	}
	for _, o := range []client.Object{&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{}} {
		err := r.API.Live.Get(ctx, client.ObjectKey{Name: clusterRoleName(p)}, o)
		if err == nil &&
			o.GetAnnotations()[state.AnnotationInstalledBy] == packagesv1alpha1.PackageKind+"/"+p.Namespace+"/"+p.Name {
			err = r.API.Delete(ctx, o)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the role %s: %w", clusterRoleName(p), err)
		}
	}
	changed := p.DeepCopy()
	controllerutil.RemoveFinalizer(changed, FinalizerProvider)
	if err := client.IgnoreNotFound(r.API.Client.Update(ctx, changed)); err != nil {
		return fmt.Errorf("remove the finalizer of %s: %w", p.Name, err)
	}
	p.Finalizers, p.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	return nil
}

// deleteAccount deletes the ServiceAccount of a Package, and its roles in its namespace, unless other clients created
// them.
func (r *Packages) deleteAccount(ctx context.Context, p *packagesv1alpha1.Package) error {
	if err := r.deleteRoles(ctx, p); err != nil {
		return err
	}
	return r.deleteOwned(ctx, p, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name,
	}})
}

// deleteRoles deletes the roles of a Package in its namespace.
func (r *Packages) deleteRoles(ctx context.Context, p *packagesv1alpha1.Package) error {
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: RoleName(p.Name)}
	for _, o := range []client.Object{&rbacv1.RoleBinding{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}} {
		if err := r.deleteOwned(ctx, p, o); err != nil {
			return err
		}
	}
	return nil
}

// deleteOwned deletes an object if it exists and a Package owns it.
func (r *Packages) deleteOwned(ctx context.Context, p *packagesv1alpha1.Package, o client.Object) error {
	err := r.API.Live.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err == nil && o.GetDeletionTimestamp() == nil &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == p.UID }) {
		err = r.API.Delete(ctx, o)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, which belongs to the controller of the Package %s: %w", o.GetName(), p.Name, err)
	}
	return nil
}

// reconcileDelete stops the controller of a Package that is being deleted, and deletes its cluster roles.
func (r *Packages) reconcileDelete(ctx context.Context, p *packagesv1alpha1.Package) error {
	if err := r.stop(ctx, client.ObjectKeyFromObject(p)); err != nil {
		return err
	}
	return r.deleteClusterRoles(ctx, p)
}
