package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// shownWords is how many words of a list a message shows.
const shownWords = 8

// Describe describes a rule in one line, such as "get, list compositions in
// apiextensions.crossplane.io".
func Describe(rule rbacv1.PolicyRule) string {
	var parts []string
	if len(rule.Resources) > 0 {
		part := words(rule.Verbs) + " " + words(rule.Resources) + " in " + groupWords(rule.APIGroups)
		if len(rule.ResourceNames) > 0 {
			part += " named " + words(rule.ResourceNames)
		}
		parts = append(parts, part)
	}
	if len(rule.NonResourceURLs) > 0 {
		parts = append(parts, words(rule.Verbs)+" of the URLs "+words(rule.NonResourceURLs))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " and ")
}

func groupWords(groups []string) string {
	named := make([]string, len(groups))
	for i, g := range groups {
		if named[i] = g; g == groupCore {
			named[i] = "the core group"
		}
	}
	return words(named)
}

func words(list []string) string {
	return wording.Few(list, shownWords, ", ")
}

// describeAll lists rules for a message and counts the omitted ones: a condition has room
// for some tens of rules.
func describeAll(rules []rbacv1.PolicyRule) string {
	lines := make([]string, len(rules))
	for i, r := range rules {
		lines[i] = Describe(r)
	}
	return list(lines)
}

// shownLines is how many rules a message names.
const shownLines = 20

func list(lines []string) string { return wording.Few(lines, shownLines, "; ") }
