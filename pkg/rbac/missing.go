package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Missing returns the rules of want that have does not cover, in a short and stable form,
// and nil if have covers all. It follows the API server, which allows a client to create
// a role only if each verb on each resource, object and URL in it is in one rule that the
// client holds. A client that holds all of want may create a role with it, and otherwise
// the API server denies exactly the rules that Missing returns. The verbs escalate and
// bind, which disable that check, are not considered.
//
// A rule of want that expands to more than 65,536 single grants, alone or with the rules
// before it, is missing as a whole unless one rule of have covers it.
func Missing(have, want []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	byGroup := map[string][]rbacv1.PolicyRule{}
	for _, rule := range have {
		for _, group := range rule.APIGroups {
			byGroup[group] = append(byGroup[group], rule)
		}
	}
	lacking := map[grant]bool{}
	var whole []rbacv1.PolicyRule
	budget := maxGrants
	for _, rule := range want {
		if slices.ContainsFunc(have, func(h rbacv1.PolicyRule) bool { return coversRule(h, rule) }) {
			continue
		}
		n := count(rule, budget)
		if n > budget {
			whole = append(whole, sortedRule(rule))
			continue
		}
		budget -= n
		for _, g := range grants(rule) {
			if !covered(have, byGroup, g) {
				lacking[g] = true
			}
		}
	}
	return sortRules(append(merge(withoutCovered(lacking)), whole...))
}

func covered(have []rbacv1.PolicyRule, byGroup map[string][]rbacv1.PolicyRule, g grant) bool {
	by := func(rule rbacv1.PolicyRule) bool { return covers(rule, g) }
	if g.url != "" {
		return slices.ContainsFunc(have, by)
	}
	return slices.ContainsFunc(byGroup[g.group], by) || slices.ContainsFunc(byGroup[star], by)
}

// Changes returns the permissions of a runtime that one version adds to and removes from
// another, regardless of how the rules are written. A permission that was namespaced and
// is cluster-wide now counts as added.
func Changes(before, after Input) (added, removed []rbacv1.PolicyRule) {
	everywhere, within := RuntimeRules(before)
	added = Beyond(everywhere, within, after)
	everywhere, within = RuntimeRules(after)
	return added, Beyond(everywhere, within, before)
}

// Beyond returns the rules of a runtime that are not covered by rules held cluster-wide
// and in its namespace.
func Beyond(everywhere, within []rbacv1.PolicyRule, in Input) []rbacv1.PolicyRule {
	wantEverywhere, wantWithin := RuntimeRules(in)
	return canonical(slices.Concat(
		Missing(everywhere, wantEverywhere), Missing(slices.Concat(everywhere, within), wantWithin),
	))
}
