package rbac

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// canonical returns equivalent rules in their shortest usual form: rules that another
// rule covers are removed, rules that differ in one part are merged, and the result is
// sorted. Rules that expand to too many grants are sorted and kept unchanged.
func canonical(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	all := map[grant]bool{}
	var whole []rbacv1.PolicyRule
	budget := maxGrants
	for _, rule := range rules {
		n := count(rule, budget)
		if n > budget {
			whole = append(whole, sortedRule(rule))
			continue
		}
		budget -= n
		for _, g := range grants(rule) {
			all[g] = true
		}
	}
	return sortRules(append(merge(withoutCovered(all)), whole...))
}

// withoutCovered removes every grant that another grant of the set covers.
func withoutCovered(all map[grant]bool) map[grant]bool {
	var urls []grant
	var stars stars
	for g := range all {
		if strings.HasSuffix(g.url, star) {
			urls = append(urls, g)
		}
		stars.verb = stars.verb || g.verb == star
		stars.group = stars.group || g.group == star
		stars.resource = stars.resource || strings.HasPrefix(g.resource, star)
		stars.names = stars.names || g.name != ""
	}
	out := map[grant]bool{}
	for g := range all {
		if !slices.ContainsFunc(stars.wider(g), func(w grant) bool { return all[w] }) && !urlCovered(urls, g) {
			out[g] = true
		}
	}
	return out
}

// stars records the parts in which some grant of a set has a wildcard. Most sets have few
// wildcards and thousands of grants.
type stars struct {
	verb, group, resource, names bool
}

// wider returns the grants that cover this grant and that a set with these wildcards can
// contain.
func (s stars) wider(g grant) []grant {
	out := []grant{g}
	widen := func(possible bool, change func(*grant)) {
		if !possible {
			return
		}
		for _, narrow := range out {
			change(&narrow)
			out = append(out, narrow)
		}
	}
	widen(s.verb, func(w *grant) { w.verb = star })
	if g.url == "" {
		widen(s.group, func(w *grant) { w.group = star })
		widen(s.names, func(w *grant) { w.name = "" })
		narrow := len(out)
		widen(s.resource, func(w *grant) { w.resource = star })
		if sub := anyResourceWith(g.resource); s.resource && sub != g.resource {
			for _, w := range out[:narrow] {
				w.resource = sub
				out = append(out, w)
			}
		}
	}
	return slices.DeleteFunc(out, func(w grant) bool { return w == g })
}

// anyResourceWith returns "*/status" for "pods/status". It returns a resource that is not
// a subresource unchanged.
func anyResourceWith(resource string) string {
	if _, subresource, found := strings.Cut(resource, "/"); found {
		return starSlash + subresource
	}
	return resource
}

func urlCovered(prefixes []grant, g grant) bool {
	return g.url != "" && slices.ContainsFunc(prefixes, func(p grant) bool {
		// Of two equivalent patterns, "/a*" and "/a**", the shorter one is kept.
		wider := p.url != g.url && urlCovers(p.url, g.url) && (!urlCovers(g.url, p.url) || len(p.url) < len(g.url))
		return wider && (p.verb == g.verb || p.verb == star)
	})
}

// merge converts grants to rules: first it merges the verbs of the same resource, then
// names, resources and groups that are otherwise equal.
func merge(all map[grant]bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for g := range all {
		rules = append(rules, ruleOfGrant(g))
	}
	for _, part := range []func(*rbacv1.PolicyRule) *[]string{
		func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
		func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
		func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
		func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	} {
		rules = mergeBy(rules, part)
	}
	return rules
}

// mergeBy merges rules that differ in one part only. The part must be empty in all of
// them or in none, because no names means all names.
func mergeBy(rules []rbacv1.PolicyRule, part func(*rbacv1.PolicyRule) *[]string) []rbacv1.PolicyRule {
	merged := map[string]rbacv1.PolicyRule{}
	for _, rule := range rules {
		words := *part(&rule)
		rest := rule
		*part(&rest) = nil
		key := ruleKey(rest)
		if len(words) == 0 {
			key += "\x01none"
		}
		if other, ok := merged[key]; ok {
			words = append(slices.Clone(*part(&other)), words...)
		}
		slices.Sort(words)
		*part(&rule) = slices.Compact(words)
		merged[key] = rule
	}
	return slices.Collect(maps.Values(merged))
}

// ruleKey returns a key that is equal for equal rules with sorted parts.
func ruleKey(r rbacv1.PolicyRule) string {
	parts := [][]string{r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs, r.Verbs}
	var b strings.Builder
	for _, part := range parts {
		for _, word := range part {
			b.WriteString(word)
			b.WriteByte(0)
		}
		b.WriteByte(1)
	}
	return b.String()
}

func sortedRule(rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	out := *rule.DeepCopy()
	for _, part := range []*[]string{
		&out.APIGroups, &out.Resources, &out.ResourceNames, &out.NonResourceURLs, &out.Verbs,
	} {
		slices.Sort(*part)
		*part = slices.Compact(*part)
	}
	return out
}

func sortRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(
			slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
			slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.NonResourceURLs, b.NonResourceURLs),
			slices.Compare(a.Verbs, b.Verbs))
	})
	return rules
}
