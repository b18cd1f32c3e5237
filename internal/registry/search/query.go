package search

import (
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// expression returns the full-text expression for the documents that can match a query, and "" if a part of the query selects
// nothing that the index contains, such as a pattern of groups without a complete label.
func expression(q catalog.Query, words []string) string {
	return expressionWith(q, words, prefixTerm)
}

// exactExpression is like expression, but its words are complete.
func exactExpression(q catalog.Query, words []string) string {
	return expressionWith(q, words, exactTerm)
}

// expressionWith returns an expression with the given terms for words.
func expressionWith(q catalog.Query, words []string, term func(prefix, token string) string) string {
	var terms []string
	for _, w := range words {
		terms = append(terms, wordTerm(w, term))
	}
	if q.Kind != "" {
		terms = append(terms, nameTerm(q.Kind))
	}
	if q.Provides != "" {
		terms = append(terms, nameTerm(q.Provides))
	}
	if q.Field != "" {
		terms = append(terms, prefixTerm(fieldToken, q.Field))
	}
	if q.Type != "" {
		terms = append(terms, exactTerm(typeToken, q.Type))
	}
	if q.Group != "" {
		terms = append(terms, groupTerms(q.Group)...)
	}
	return strings.Join(terms, " AND ")
}

// wordTerm returns the term for a word: a complete word, or the beginning of a word or of a name. A word with a dot or a slash is
// KIND.GROUP, GROUP or a repository.
func wordTerm(w string, term func(prefix, token string) string) string {
	w = clip(w)
	if name, _, versioned := strings.Cut(w, "/"); versioned && strings.Contains(name, ".") {
		return "(" + qualifiedTerm(name) + " OR " + term("", w) + ")"
	}
	if strings.Contains(w, ".") {
		return "(" + qualifiedTerm(w) + " OR " + term("", w) + ")"
	}
	if singular := strings.TrimSuffix(w, "s"); singular != w && singular != "" {
		return "(" + term("", w) + " OR " + exactTerm("", singular) + ")"
	}
	return term("", w)
}

func qualifiedTerm(name string) string {
	kind, group, _ := strings.Cut(name, ".")
	return "(" + exactTerm(exactToken, kind) + " AND " + exactTerm(groupToken, group) + ")"
}

// nameTerm returns the term for KIND or KIND.GROUP.
func nameTerm(name string) string {
	name, _, _ = strings.Cut(name, "/")
	kind, group, qualified := strings.Cut(name, ".")
	if !qualified {
		return exactTerm(exactToken, kind)
	}
	return exactTerm(exactToken, kind) + " AND " + exactTerm(groupToken, group)
}

// groupTerms returns the terms for a pattern of groups: its complete labels.
func groupTerms(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{exactTerm(groupToken, pattern)}
	}
	var terms []string
	for label := range strings.SplitSeq(pattern, ".") {
		if label != "" && !strings.Contains(label, "*") {
			terms = append(terms, exactTerm("", label))
		}
	}
	return terms
}

func exactTerm(prefix, token string) string { return quote(prefix + clip(token)) }

func prefixTerm(prefix, token string) string { return quote(prefix+clip(token)) + "*" }

// quote returns a string of the full-text syntax, in which no character has a meaning. It drops characters that no token contains;
// a token without other characters matches nothing.
func quote(token string) string {
	token = strings.Map(func(r rune) rune {
		if r < 0x80 && (r < '0' || r > '9') && (r < 'a' || r > 'z') && !strings.ContainsRune(tokenCharacters, r) {
			return -1
		}
		return r
	}, token)
	if strings.Trim(token, tokenCharacters) == "" {
		token = exactToken + exactToken
	}
	return `"` + token + `"`
}

// tokenCharacters are the characters of tokens other than letters and digits.
const tokenCharacters = "=@~%.-/_:+"
