package search

import (
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// Prefixes of tokens that are no words. No word of a query begins with them.
const (
	exactToken = "="
	groupToken = "@"
	fieldToken = "~"
	typeToken  = "%"
)

const (
	// mostTokens limits the tokens of one document.
	mostTokens = 20000
	// longestToken limits the length of a token in bytes.
	longestToken = 80
)

// tokenSet collects distinct tokens.
type tokenSet struct {
	seen   map[string]bool
	tokens []string
}

func newTokens() *tokenSet { return &tokenSet{seen: map[string]bool{}} }

func (t *tokenSet) add(prefix, token string) {
	token = clip(token)
	if token == "" || len(t.tokens) >= mostTokens {
		return
	}
	if token = prefix + token; !t.seen[token] {
		t.seen[token] = true
		t.tokens = append(t.tokens, token)
	}
}

// clip returns a token in lower case with its maximum length.
func clip(token string) string {
	token = strings.ToLower(token)
	if len(token) > longestToken {
		token = token[:longestToken]
	}
	return token
}

// addWords adds the words of a text.
func (t *tokenSet) addWords(text string) {
	for _, word := range strings.FieldsFunc(text, notWord) {
		t.add("", word)
		for part := range strings.SplitSeq(word, "-") {
			t.add("", part)
		}
	}
}

func notWord(r rune) bool {
	return r < 0x80 && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func (t *tokenSet) String() string { return strings.Join(t.tokens, " ") }

// addName adds the words of a CamelCase name, and the name from the beginning of each of them.
func (t *tokenSet) addName(name string) {
	start := 0
	for i := 1; i <= len(name); i++ {
		if i < len(name) && !isWordStart(name, i) {
			continue
		}
		t.add("", name[start:])
		t.add("", name[start:i])
		start = i
	}
}

// isWordStart reports whether a word of a CamelCase name begins at i: VPCPeering begins words at V and at P.
func isWordStart(name string, i int) bool {
	upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	return upper(i) && (!upper(i-1) || i+1 < len(name) && !upper(i+1))
}

func (t *tokenSet) addRepository(repository string) {
	t.add("", repository)
	for part := range strings.SplitSeq(repository, "/") {
		t.add("", part)
	}
	name := repository[strings.LastIndexByte(repository, '/')+1:]
	parts := strings.Split(name, "-")
	for i := range parts {
		t.add("", strings.Join(parts[i:], "-"))
		t.add("", parts[i])
	}
}

// packageTokens returns the tokens of a package.
func packageTokens(p *catalog.Package, text *catalog.Text) *tokenSet {
	t := briefTokens(p)
	t.addWords(p.Summary)
	if text != nil {
		t.addWords(text.Readme)
	}
	return t
}

// briefTokens returns the tokens by which a package also finds its kinds.
func briefTokens(p *catalog.Package) *tokenSet {
	t := newTokens()
	t.add(typeToken, p.Type)
	t.addRepository(p.Repository)
	for _, alias := range p.Aliases {
		t.addRepository(alias)
	}
	t.addWords(p.Title)
	for _, keyword := range p.Keywords {
		t.add("", keyword)
		t.addWords(keyword)
	}
	t.addWords(p.Category)
	return t
}

// kindTokens returns the tokens of a kind. The parameter brief has the tokens of its package.
func kindTokens(k *catalog.Kind, brief string, text *catalog.KindText) string {
	t := newTokens()
	for _, name := range append([]string{k.Kind, k.Plural, k.Singular}, k.ShortNames...) {
		t.add(exactToken, name)
		t.add("", name)
	}
	t.addName(k.Kind)
	t.add(groupToken, k.Group)
	t.add("", k.Group)
	for label := range strings.SplitSeq(k.Group, ".") {
		t.add("", label)
	}
	if text != nil {
		t.addWords(text.Description)
		for _, field := range text.Fields {
			t.add(fieldToken, field)
		}
	}
	return t.String() + " " + brief
}
