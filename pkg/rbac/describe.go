package rbac

import (
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// shownWords is the maximum number of words of a list in a condition. Text that a user approves is complete.
const shownWords = 8

// Describe describes a rule in one line, such as "get, list compositions in
// apiextensions.crossplane.io".
func Describe(rule rbacv1.PolicyRule) string {
	return describe(rule, func(list []string) string { return strings.Join(list, ", ") })
}

// describe returns a rule as a text. The words come from a package; words with characters that are not
// allowed in names are quoted.
func describe(rule rbacv1.PolicyRule, join func([]string) string) string {
	words := func(list []string) string {
		quoted := make([]string, len(list))
		for i, word := range list {
			quoted[i] = quoteOdd(word)
		}
		return join(quoted)
	}
	var parts []string
	if len(rule.Resources) > 0 {
		part := words(rule.Verbs) + " " + words(rule.Resources) + " in " + groupWords(rule.APIGroups, join)
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

func groupWords(groups []string, join func([]string) string) string {
	named := make([]string, len(groups))
	for i, g := range groups {
		if named[i] = quoteOdd(g); g == groupCore {
			named[i] = "the core group"
		}
	}
	return join(named)
}

// quoteOdd returns a word of a rule, quoted if it could be confused with the surrounding text.
func quoteOdd(word string) string {
	const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*/:"
	if word != "" && strings.Trim(word, usual) == "" {
		return word
	}
	return strconv.Quote(word)
}

// summarize returns a rule as a text of limited length.
func summarize(rule rbacv1.PolicyRule) string {
	return describe(rule, func(list []string) string { return wording.Few(list, shownWords, ", ") })
}

// describeAll returns a list of rules for a condition, with the number of omitted rules.
func describeAll(rules []rbacv1.PolicyRule) string {
	lines := make([]string, len(rules))
	for i, r := range rules {
		lines[i] = summarize(r)
	}
	return list(lines)
}

// shownLines is the maximum number of rules in a message.
const shownLines = 20

func list(lines []string) string { return wording.Few(lines, shownLines, "; ") }
