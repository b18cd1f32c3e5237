package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// covers reports whether the rule matches all of a grant.
func (r Rule) covers(g grant) bool {
	if !all(r.Verbs) && !slices.Contains(r.Verbs, g.verb) {
		return false
	}
	if g.url != "" || len(r.NonResourceURLs) > 0 {
		return g.url != "" && slices.ContainsFunc(r.NonResourceURLs, func(u string) bool { return urlCovers(u, g.url) })
	}
	return r.coversGroup(g.group) &&
		(all(r.Resources) ||
			slices.ContainsFunc(r.Resources, func(have string) bool { return resourceCovers(have, g.resource) })) &&
		(all(r.ResourceNames) || slices.Contains(r.ResourceNames, g.name))
}

// all reports whether words match all values.
func all(words []string) bool { return len(words) == 0 || slices.Contains(words, star) }

func (r Rule) coversGroup(group string) bool {
	return all(r.APIGroups) || slices.ContainsFunc(r.APIGroups, func(have string) bool {
		suffix, pattern := strings.CutPrefix(have, star)
		return have == group || pattern && group != star && strings.HasSuffix(group, suffix)
	})
}

// touches reports whether the rule matches any part of a request.
func (r Rule) touches(request rbacv1.PolicyRule) bool {
	if !all(r.Verbs) && !slices.Contains(request.Verbs, star) &&
		!slices.ContainsFunc(request.Verbs, func(v string) bool { return slices.Contains(r.Verbs, v) }) {
		return false
	}
	if len(request.Verbs) == 0 {
		return false
	}
	if len(r.NonResourceURLs) > 0 {
		return r.touchesURL(request.NonResourceURLs)
	}
	return slices.ContainsFunc(request.APIGroups, func(g string) bool { return g == star || r.coversGroup(g) }) &&
		slices.ContainsFunc(request.Resources, r.touchesResource) &&
		(all(r.ResourceNames) || len(request.ResourceNames) == 0 ||
			slices.ContainsFunc(request.ResourceNames, func(n string) bool { return slices.Contains(r.ResourceNames, n) }))
}

func (r Rule) touchesURL(requested []string) bool {
	return slices.ContainsFunc(requested, func(u string) bool {
		return slices.ContainsFunc(
			r.NonResourceURLs, func(have string) bool { return urlCovers(have, u) || urlCovers(u, have) },
		)
	})
}

// touchesResource reports whether the rule matches any part of a requested resource. A
// resource includes its subresources, and "*/status" in a request includes the status of
// every resource.
func (r Rule) touchesResource(requested string) bool {
	if all(r.Resources) || requested == star {
		return true
	}
	plural, subresource, isSub := strings.Cut(requested, "/")
	return slices.ContainsFunc(r.Resources, func(have string) bool {
		if resourceCovers(have, requested) || isSub && have == plural {
			return true
		}
		havePlural, haveSub, haveIsSub := strings.Cut(have, "/")
		if !isSub || plural != star {
			return false
		}
		return !haveIsSub && havePlural != star || haveIsSub && haveSub == subresource
	})
}
