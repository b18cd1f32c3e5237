package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Roles returns the roles of the manager, and their bindings.
func (o Options) Roles() []Object {
	out := RolesOf(o.Grants(), o.Namespace)
	if !o.Namespaced {
		out = append(out, customResources(o.Namespace)...)
	}
	return out
}

// RolesOf puts grants into a role for each scope, and binds them to the manager that
// runs in a namespace. A scope without grants has no role.
func RolesOf(grants []Grant, namespace string) []Object {
	var out []Object
	for _, scope := range []Scope{Everywhere, Within, Default} {
		var rules []rbacv1.PolicyRule
		for _, g := range grants {
			if g.Scope == scope {
				rules = append(rules, g.Rules...)
			}
		}
		if len(rules) > 0 {
			out = append(out, bound(scope, rules, namespace)...)
		}
	}
	return out
}

func bound(scope Scope, rules []rbacv1.PolicyRule, namespace string) []Object {
	manager := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Name}}
	meta := metav1.ObjectMeta{Name: Name, Labels: labels()}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Name}
	if scope == Everywhere {
		return []Object{
			&rbacv1.ClusterRole{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "ClusterRole"), ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "ClusterRoleBinding"), ObjectMeta: meta, RoleRef: ref,
				Subjects: manager,
			},
		}
	}
	meta.Namespace = namespace
	if scope == Default {
		// If both namespaces are the same, the other role has this name.
		meta.Namespace, meta.Name = metav1.NamespaceDefault, Name+"-events"
	}
	ref.Kind, ref.Name = "Role", meta.Name
	return []Object{
		&rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "RoleBinding"), ObjectMeta: meta, RoleRef: ref, Subjects: manager,
		},
	}
}

// CustomResources is the name of the role with which the manager reads and rewrites custom resources of packages.
const CustomResources = Name + "-custom-resources"

// customResources returns the role with which the manager counts, judges and migrates the custom resources of packages,
// and its binding. The role collects those that let users edit these custom resources: it grants nothing that the roles
// of packages do not grant.
func customResources(namespace string) []Object {
	const edit = "rbac.crossplane.io/aggregate-to-edit"
	meta := metav1.ObjectMeta{Name: CustomResources, Labels: labels()}
	return []Object{
		&rbacv1.ClusterRole{
			TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "ClusterRole"), ObjectMeta: meta,
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchLabels: map[string]string{edit: "true", "rbac.crossplane.io/aggregate-to-crossplane": "true"}},
				{
					MatchLabels: map[string]string{edit: "true"}, MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: "rbac.crossplane.io/xrd", Operator: metav1.LabelSelectorOpExists},
					},
				},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "ClusterRoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: CustomResources},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Name}},
		},
	}
}
