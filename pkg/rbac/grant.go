package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// maxGrants limits the number of single grants that one call expands: a rule of a few
// kilobytes can expand to billions of them.
const maxGrants = 1 << 16

const (
	star      = rbacv1.ResourceAll
	starSlash = star + "/"
)

// grant is the smallest permission: one verb on one resource, or on one object of it, or
// on one URL. A part can be the wildcard "*".
type grant struct {
	group, resource string
	// name is the name of an object; empty means all objects.
	name string
	// url is set instead of the others.
	url  string
	verb string
}

// count returns the number of grants that a rule expands to, at most limit+1.
func count(rule rbacv1.PolicyRule, limit int) int {
	total := capped(len(rule.NonResourceURLs), len(rule.Verbs), limit)
	resources := 1
	for _, n := range []int{len(rule.APIGroups), len(rule.Resources), max(1, len(rule.ResourceNames)), len(rule.Verbs)} {
		resources = capped(resources, n, limit)
	}
	return min(total+resources, limit+1)
}

// capped multiplies two numbers that are at most limit+1 or lengths of slices in memory;
// their product fits in an int64 and is limited before the next multiplication.
func capped(a, b, limit int) int { return int(min(int64(a)*int64(b), int64(limit)+1)) }

// grants splits a rule into grants, as the API server does before it compares rules.
func grants(rule rbacv1.PolicyRule) []grant {
	var out []grant
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					out = append(out, grant{group: group, resource: resource, name: name, verb: verb})
				}
			}
		}
		for _, url := range rule.NonResourceURLs {
			out = append(out, grant{url: url, verb: verb})
		}
	}
	return out
}

// covers reports whether a rule allows a grant, according to the API server's check for
// creating roles.
func covers(rule rbacv1.PolicyRule, g grant) bool {
	if !slices.Contains(rule.Verbs, g.verb) && !slices.Contains(rule.Verbs, star) {
		return false
	}
	if g.url != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return urlCovers(url, g.url) })
	}
	return (slices.Contains(rule.APIGroups, g.group) || slices.Contains(rule.APIGroups, star)) &&
		slices.ContainsFunc(rule.Resources, func(r string) bool { return resourceCovers(r, g.resource) }) &&
		(len(rule.ResourceNames) == 0 || g.name != "" && slices.Contains(rule.ResourceNames, g.name))
}

// resourceCovers reports whether one resource pattern covers another: "*" covers every
// resource and subresource, and "*/status" covers the status of every resource.
func resourceCovers(have, want string) bool {
	if have == star || have == want {
		return true
	}
	_, subresource, found := strings.Cut(want, "/")
	return found && have == starSlash+subresource
}

// urlCovers reports whether one URL pattern covers another: a "*" at the end matches any
// suffix.
func urlCovers(have, want string) bool {
	return have == want || strings.HasSuffix(have, star) && strings.HasPrefix(want, strings.TrimRight(have, star))
}

// coversRule reports whether one rule alone covers another. It does not expand rules, so
// it is fast for rules with many grants.
func coversRule(have, want rbacv1.PolicyRule) bool {
	all := func(words []string, covered func(string) bool) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !covered(w) })
	}
	if !slices.Contains(have.Verbs, star) &&
		!all(want.Verbs, func(v string) bool { return slices.Contains(have.Verbs, v) }) {
		return false
	}
	if !all(want.NonResourceURLs, func(u string) bool {
		return slices.ContainsFunc(have.NonResourceURLs, func(h string) bool { return urlCovers(h, u) })
	}) {
		return false
	}
	if len(want.APIGroups) == 0 || len(want.Resources) == 0 {
		return true
	}
	named := len(have.ResourceNames) == 0 || len(want.ResourceNames) > 0 &&
		all(want.ResourceNames, func(n string) bool { return slices.Contains(have.ResourceNames, n) })
	return named &&
		(slices.Contains(have.APIGroups, star) ||
			all(want.APIGroups, func(g string) bool { return slices.Contains(have.APIGroups, g) })) &&
		all(want.Resources, func(r string) bool {
			return slices.ContainsFunc(have.Resources, func(h string) bool { return resourceCovers(h, r) })
		})
}
