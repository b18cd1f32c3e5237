package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of packages, as in the pkg.crossplane.io API.
const (
	Provider      = "Provider"
	Configuration = "Configuration"
	Function      = "Function"
)

// Input is what the rights of one revision follow from.
type Input struct {
	// Kind is [Provider], [Configuration] or [Function].
	Kind string
	// Package and Revision are the names of the objects in the cluster.
	Package, Revision string

	// Defined are the resources (plural and group) of the definitions that the
	// revision established.
	Defined []schema.GroupResource
	// Family are the resources of the other members of the package's family, by
	// the same publisher.
	Family []schema.GroupResource
	// Requests are the rules that the package asks for. They have passed the
	// [Ceiling].
	Requests []rbacv1.PolicyRule
	// SafeStart says that the program looks at definitions before it starts
	// controllers for them.
	SafeStart bool
	// Needs is what the program needs of Secrets, ConfigMaps, Events and Leases.
	Needs Needs

	// ServiceAccounts are whom the program runs as. Without any nothing is bound.
	ServiceAccounts []rbacv1.Subject
	// Namespace is where the program runs.
	Namespace string
	// Namespaced confines the program to Namespace, except for resources that
	// have no namespace.
	Namespaced bool
	// ClusterScoped are the resources known to have no namespace, among those that
	// the other fields name. It is looked at only when Namespaced is set; what is
	// not in it is confined.
	ClusterScoped map[schema.GroupResource]bool
}

// Set is the roles and bindings of a revision, each list in the order of names.
// Owners are for the caller to add.
type Set struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
}

// Everywhere are the rules of the cluster roles: what whoever creates them has to
// hold in the whole cluster, or the API server refuses.
func (s Set) Everywhere() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range s.ClusterRoles {
		rules = append(rules, r.Rules...)
	}
	return rules
}

// Within are the rules of the roles in a namespace: what whoever creates them has
// to hold there.
func (s Set) Within(namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range s.Roles {
		if r.Namespace == namespace {
			rules = append(rules, r.Rules...)
		}
	}
	return rules
}
