package check

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

//go:embed spdx.txt
var spdxList string

// spdxIDs are the known identifiers in lower case: SPDX compares without case
// (SPDX specification, annex "SPDX license expressions").
var spdxIDs = sync.OnceValue(func() map[string]bool {
	ids := map[string]bool{}
	for line := range strings.Lines(spdxList) {
		if id := strings.TrimSpace(line); id != "" && id[0] != '#' {
			ids[strings.ToLower(id)] = true
		}
	}
	return ids
})

var (
	spdxToken = lazyregexp.New(`[()]|[^()\s]+`)
	// spdxName is the syntax of names that are not in a list: references to custom
	// licenses, and exceptions.
	spdxName = lazyregexp.New(`^[A-Za-z0-9.:-]+$`)
)

// licenseFault describes why text is not an SPDX license expression, and returns "" if it
// is one.
func licenseFault(text string) string {
	p := &spdxParser{tokens: spdxToken().FindAllString(text, -1)}
	if f := p.expression(); f != "" {
		return f
	}
	if p.at < len(p.tokens) {
		return fmt.Sprintf("unexpected %.40q", p.tokens[p.at])
	}
	return ""
}

// IsSPDXExpression reports whether a text is an SPDX license expression of known licenses.
func IsSPDXExpression(text string) bool { return licenseFault(text) == "" }

type spdxParser struct {
	tokens []string
	at     int
	depth  int
}

// take consumes and returns the next token if it is one of the words, ignoring case.
func (p *spdxParser) take(words ...string) bool {
	for _, w := range words {
		if p.at < len(p.tokens) && strings.EqualFold(p.tokens[p.at], w) {
			p.at++
			return true
		}
	}
	return false
}

// expression reads terms joined by AND and OR. Their precedence does not affect whether
// the expression is valid.
func (p *spdxParser) expression() string {
	if p.depth++; p.depth > 20 {
		return "too many parentheses"
	}
	defer func() { p.depth-- }()
	for {
		if f := p.term(); f != "" {
			return f
		}
		if !p.take("AND", "OR") {
			return ""
		}
	}
}

func (p *spdxParser) term() string {
	if p.take("(") {
		if f := p.expression(); f != "" {
			return f
		}
		if !p.take(")") {
			return `")" is missing`
		}
		return ""
	}
	if p.at == len(p.tokens) {
		return "an identifier is missing"
	}
	id := p.tokens[p.at]
	p.at++
	if !knownLicense(id) {
		return fmt.Sprintf("%.60q is not an SPDX identifier", id)
	}
	if p.take("WITH") {
		if p.at == len(p.tokens) || !spdxName().MatchString(p.tokens[p.at]) {
			return "an exception is missing after WITH"
		}
		p.at++
	}
	return ""
}

func knownLicense(id string) bool {
	if _, ref, ok := strings.Cut(id, "LicenseRef-"); ok {
		return spdxName().MatchString(ref)
	}
	id = strings.ToLower(id)
	return spdxIDs()[id] || spdxIDs()[strings.TrimSuffix(id, "+")]
}
