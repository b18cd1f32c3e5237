package rbac

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bindCluster adds the runtime's ClusterRole and its binding.
func (s *Set) bindCluster(in Input, rules []rbacv1.PolicyRule) {
	if len(rules) == 0 {
		return
	}
	role := in.clusterRole(suffixSystem, map[string]string{}, rules)
	setName(&role.ObjectMeta, labelSystem, in.Revision)
	s.ClusterRoles = append(s.ClusterRoles, role)
	if subjects := in.subjects(); len(subjects) > 0 {
		s.ClusterRoleBindings = append(s.ClusterRoleBindings, rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   subjects,
		})
	}
}

// bindNamespace adds the runtime's Role and its binding.
func (s *Set) bindNamespace(in Input, rules []rbacv1.PolicyRule) {
	if len(rules) == 0 {
		return
	}
	role := in.role(suffixSystem, map[string]string{}, rules)
	setName(&role.ObjectMeta, labelSystem, in.Revision)
	s.Roles = append(s.Roles, role)
	if subjects := in.subjects(); len(subjects) > 0 {
		s.RoleBindings = append(s.RoleBindings, rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   subjects,
		})
	}
}

// subjects returns the ServiceAccounts of the runtime, without duplicates, sorted.
func (in Input) subjects() []rbacv1.Subject {
	subjects := slices.Clone(in.ServiceAccounts)
	slices.SortFunc(subjects, func(a, b rbacv1.Subject) int {
		return cmp.Or(
			strings.Compare(a.APIGroup, b.APIGroup), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(subjects)
}
