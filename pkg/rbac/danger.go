package rbac

import (
	"slices"
	"strings"
)

const (
	verbEscalate    = "escalate"
	verbBind        = "bind"
	verbImpersonate = "impersonate"
)

// dangerous lists the verbs with which a subject can obtain further permissions, and the
// resources for which the API server checks them.
var dangerous = []struct {
	verb, group string
	resources   []string
}{
	{verbEscalate, "rbac.authorization.k8s.io", []string{"roles", "clusterroles"}},
	{verbBind, "rbac.authorization.k8s.io", []string{"roles", "clusterroles"}},
	{verbImpersonate, "", []string{"users", "groups", "serviceaccounts"}},
	{verbImpersonate, "authentication.k8s.io", []string{"uids", "userextras"}},
}

// dangerousVerbs returns the dangerous verbs that a grant includes. An explicitly
// requested verb is dangerous for every resource.
func dangerousVerbs(g grant) []string {
	if isDangerous(g.verb) {
		return []string{g.verb}
	}
	if g.verb != star || g.url != "" {
		return nil
	}
	var verbs []string
	for _, d := range dangerous {
		plural, _, _ := strings.Cut(g.resource, "/")
		if (g.group == star || g.group == d.group) && (plural == star || slices.Contains(d.resources, plural)) && !slices.Contains(verbs, d.verb) {
			verbs = append(verbs, d.verb)
		}
	}
	return verbs
}

// isDangerous: beside "impersonate" there are verbs such as
// "impersonate:user-info" for impersonation within limits.
func isDangerous(verb string) bool {
	return verb == verbEscalate || verb == verbBind || strings.HasPrefix(verb, verbImpersonate)
}

// everything is each resource of each group, or each URL.
func everything(g grant) bool {
	if g.url != "" {
		return strings.Trim(g.url, "/*") == "" && strings.HasSuffix(g.url, star)
	}
	return g.group == star && g.resource == star
}
