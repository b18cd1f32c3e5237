package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Missing are the rules of want that have does not cover, in a short and stable
// form; none when have covers everything. It follows the API server, which lets
// somebody create a role only if each verb on each resource, object and URL in it is
// in one rule that they have. So whoever has all of want may create a role with
// it, and whoever lacks something is refused for exactly what this gives. The
// verbs escalate and bind, which turn that check off, are not looked at.
//
// A rule of want that stands for more than 65,536 single grants, alone or with
// those before it, is missing in whole unless one rule of have covers it.
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

// Changes compares the rights of the programs of two versions by what they allow,
// however they are written: added is what only the second has, removed what only the
// first does. What held in one namespace and holds everywhere now is added.
func Changes(before, after Input) (added, removed []rbacv1.PolicyRule) {
	everywhere, within := Program(before)
	added = Beyond(everywhere, within, after)
	everywhere, within = Program(after)
	return added, Beyond(everywhere, within, before)
}

// Beyond are the rules of a program that those who have some rules everywhere, and
// some in its namespace, do not have where they hold.
func Beyond(everywhere, within []rbacv1.PolicyRule, in Input) []rbacv1.PolicyRule {
	wantEverywhere, wantWithin := Program(in)
	return canonical(slices.Concat(Missing(everywhere, wantEverywhere), Missing(slices.Concat(everywhere, within), wantWithin)))
}
