package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

// attempt is one request in a small model. The tests compare rules by the attempts that
// they allow; the model is so small that all attempts can be enumerated. Each part has a
// word that no rule names, which only "*" matches.
type attempt struct {
	group, resource, subresource, name, url, verb string
}

const unnamed = "unnamed"

var attempts = func() []attempt {
	var all []attempt
	for _, verb := range []string{"get", "list", "escalate", unnamed} {
		for _, group := range []string{"", "a.org", "b.a.org", unnamed} {
			for _, resource := range []string{"pods", "roles", unnamed} {
				for _, sub := range []string{"", "status", unnamed} {
					for _, name := range []string{"", "x", "y", unnamed} {
						all = append(all, attempt{group: group, resource: resource, subresource: sub, name: name, verb: verb})
					}
				}
			}
		}
		for _, url := range []string{"/a", "/a/b", "/a/" + unnamed, "/a" + unnamed, "/" + unnamed, unnamed} {
			all = append(all, attempt{url: url, verb: verb})
		}
	}
	return all
}()

// allows is how the API server decides about an attempt.
func allows(rules []rbacv1.PolicyRule, a attempt) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		if !hasWord(r.Verbs, a.verb) {
			return false
		}
		if a.url != "" {
			return slices.ContainsFunc(r.NonResourceURLs, func(u string) bool {
				return u == a.url || strings.HasSuffix(u, "*") && strings.HasPrefix(a.url, strings.TrimRight(u, "*"))
			})
		}
		resource := a.resource
		if a.subresource != "" {
			resource += "/" + a.subresource
		}
		matches := hasWord(r.Resources, resource) || a.subresource != "" && slices.Contains(r.Resources, "*/"+a.subresource)
		return matches && hasWord(r.APIGroups, a.group) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name))
	})
}

func hasWord(words []string, word string) bool {
	return slices.Contains(words, word) || slices.Contains(words, "*")
}

func some(words ...string) *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom(words), 1, 3)
}

// ruleOf generates rules from the words of the model.
func ruleOf(t *rapid.T) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: some("get", "list", "escalate", "*").Draw(t, "verbs")}
	if rapid.IntRange(0, 4).Draw(t, "about") == 0 {
		rule.NonResourceURLs = some("/a", "/a/b", "/a/*", "/a*", "/a**", "*", "/*").Draw(t, "urls")
		return rule
	}
	rule.APIGroups = some("", "a.org", "b.a.org", "*").Draw(t, "groups")
	rule.Resources = some("pods", "roles", "pods/status", "roles/status", "*/status", "*").Draw(t, "resources")
	rule.ResourceNames = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 0, 2).Draw(t, "names")
	return rule
}

func rulesOf(t *rapid.T, label string) []rbacv1.PolicyRule {
	return rapid.SliceOfN(rapid.Custom(ruleOf), 0, 4).Draw(t, label)
}
