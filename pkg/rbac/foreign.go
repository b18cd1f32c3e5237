package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Foreign returns the parts of rules that allow more than to read objects of API groups other than the given ones, such
// as the groups that a package and its dependencies define. The wildcard "*" is never one of them.
func Foreign(rules []rbacv1.PolicyRule, groups []string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		rule.NonResourceURLs = nil
		rule.APIGroups = slices.DeleteFunc(
			slices.Clone(rule.APIGroups), func(g string) bool { return g != star && slices.Contains(groups, g) },
		)
		rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return slices.Contains(verbsView, v) })
		if len(rule.APIGroups) > 0 && len(rule.Resources) > 0 && len(rule.Verbs) > 0 {
			out = append(out, rule)
		}
	}
	return canonical(out)
}
