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

// dangerousVerbs returns the verbs of a grant that only the policy can allow. An
// explicitly requested verb counts for every resource.
func dangerousVerbs(g grant) []string {
	if isDangerous(g.verb) {
		return []string{g.verb}
	}
	if g.verb != star || g.url != "" {
		return nil
	}
	// Permissions on a resource are compared without its subresources.
	g.resource, _, _ = strings.Cut(g.resource, "/")
	var verbs []string
	for _, e := range escalations {
		if e.policyOnly && e.matches(g) {
			verbs = append(verbs, e.verbs...)
		}
	}
	return verbs
}

// isDangerous reports whether only the policy can allow a verb. Verbs such as
// "impersonate:user-info" allow limited impersonation.
func isDangerous(verb string) bool {
	return strings.HasPrefix(verb, verbImpersonate) || slices.ContainsFunc(escalations, func(e escalation) bool {
		return e.policyOnly && slices.Contains(e.verbs, verb)
	})
}

// everything reports whether a grant covers each resource of each group, or each URL.
func everything(g grant) bool {
	if g.url != "" {
		return strings.Trim(g.url, "/*") == "" && strings.HasSuffix(g.url, star)
	}
	return g.group == star && g.resource == star
}
