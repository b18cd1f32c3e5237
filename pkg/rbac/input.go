package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of packages, as in the API group pkg.crossplane.io.
const (
	Provider      = "Provider"
	Configuration = "Configuration"
	Function      = "Function"
)

// Input is the input from which the permissions of one revision are derived.
type Input struct {
	// Kind is [Provider], [Configuration] or [Function].
	Kind string
	// Package and Revision are the names of the objects in the cluster.
	Package, Revision string

	// Defined are the resources (plural and group) of the CRDs that the revision
	// established.
	Defined []schema.GroupResource
	// Family are the resources of the other members of the package's family, by
	// the same publisher.
	Family []schema.GroupResource
	// Requests are the rules that the package requests. They must have passed
	// [Policy.Check].
	Requests []rbacv1.PolicyRule
	// SafeStart reports whether the runtime starts the controller of a CRD only after the
	// CRD exists.
	SafeStart bool
	// Needs are the runtime's needs for Secrets, ConfigMaps, Events and Leases.
	Needs Needs

	// NoRuntime reports that the revision has no runtime, and only roles for users.
	NoRuntime bool
	// ServiceAccounts are the identities of the runtime. If it is empty, no binding is
	// derived.
	ServiceAccounts []rbacv1.Subject
	// Namespace of the runtime.
	Namespace string
	// Namespaced restricts the runtime to Namespace, except for cluster-scoped resources.
	Namespaced bool
	// ClusterScoped lists the cluster-scoped resources among the resources of the other
	// fields. It is only used if Namespaced is set; permissions for all other resources
	// are restricted to Namespace.
	ClusterScoped map[schema.GroupResource]bool
}

// WithoutRuntime returns the input for the revision without a runtime: its requests have no effect.
func (in Input) WithoutRuntime() Input {
	in.NoRuntime, in.Requests, in.ServiceAccounts = true, nil, nil
	return in
}

// Set is the roles and bindings of a revision, each list ordered by name. The caller adds
// owners.
type Set struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
}

// Everywhere returns the rules of the cluster roles, which the creator of the roles must
// hold cluster-wide.
func (s Set) Everywhere() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range s.ClusterRoles {
		rules = append(rules, r.Rules...)
	}
	return rules
}

// Within returns the rules of the roles in a namespace, which the creator of the roles
// must hold there.
func (s Set) Within(namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range s.Roles {
		if r.Namespace == namespace {
			rules = append(rules, r.Rules...)
		}
	}
	return rules
}
