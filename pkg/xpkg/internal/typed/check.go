package typed

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
)

// A Finding is a value of the wrong type, or an unknown field.
type Finding struct {
	// Path is the path of the value, such as "spec.versions[0].schema.openAPIV3Schema.properties[spec].minLength".
	Path string
	// Message describes a value of the wrong type, without its path. It is empty for an unknown field.
	Message string
	// Known are the known fields in place of an unknown field, in order.
	Known []string
	// start and end delimit the value of the wrong type.
	start, end int
}

// Check compares canonical JSON with a shape, and returns the findings in the order of the text. Null is valid
// everywhere.
func Check(text []byte, s *Shape) []Finding {
	c := checker{at: canonical.Cursor{Text: text}}
	c.check(s)
	return c.findings
}

// Correct returns JSON with null in place of every value of the wrong type, so that everything else can be decoded.
func Correct(text []byte, findings []Finding) []byte {
	var out []byte
	from := 0
	for _, f := range findings {
		if f.Message != "" {
			out = append(append(out, text[from:f.start]...), "null"...)
			from = f.end
		}
	}
	return append(out, text[from:]...)
}

type checker struct {
	at       canonical.Cursor
	path     []step
	findings []Finding
}

// step is a part of a path: a field, a key of a mapping, or an index.
type step struct {
	name  string
	index int
	kind  kind
}

func (c *checker) check(s *Shape) {
	got := c.kind()
	if got == anything || s.kind == anything { // null, or no expectation
		return
	}
	if s.kind == either {
		for _, o := range s.options {
			if fits(got, o.kind) {
				c.check(o)
				return
			}
		}
		c.wrong(got, s.options...)
		return
	}
	if !fits(got, s.kind) {
		c.wrong(got, s)
		return
	}
	switch s.kind {
	case object, mapping:
		c.at.Fields(func(key string) bool {
			c.checkField(s, key)
			return true
		})
	case list:
		i := 0
		c.at.Elements(func() {
			c.below(step{index: i, kind: list}, s.items)
			i++
		})
	}
}

func (c *checker) checkField(s *Shape, key string) {
	if s.kind == mapping {
		c.below(step{name: key, kind: mapping}, s.items)
		return
	}
	if field := s.fields[key]; field != nil {
		c.below(step{name: key, kind: object}, field)
		return
	}
	c.path = append(c.path, step{name: key, kind: object})
	c.findings = append(c.findings, Finding{Path: pathOf(c.path), Known: slices.Sorted(maps.Keys(s.fields))})
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) below(at step, s *Shape) {
	c.path = append(c.path, at)
	c.check(s)
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) wrong(got kind, want ...*Shape) {
	f := Finding{Path: pathOf(c.path), start: c.at.At}
	c.at.Skip()
	f.end = c.at.At
	var names []string
	for _, s := range want {
		names = append(names, strings.TrimSpace(string(s.kind)))
	}
	f.Message = strings.Join(names, " or ") + " is expected, not " + string(got)
	c.findings = append(c.findings, f)
}

// kind returns the kind of the value at the cursor; anything for null.
func (c *checker) kind() kind {
	switch c.at.Text[c.at.At] {
	case '{':
		return object
	case '[':
		return list
	case '"':
		return text
	case 't', 'f':
		return boolean
	case 'n':
		return anything
	}
	rest := c.at.Text[c.at.At:]
	if end := bytes.IndexAny(rest, ",]}"); end >= 0 {
		rest = rest[:end]
	}
	if _, err := strconv.ParseInt(string(rest), 10, 64); err != nil {
		return number
	}
	return integer
}

// fits reports whether a value of a kind can be decoded into a shape of a kind.
func fits(got, want kind) bool {
	return got == want || got == object && want == mapping || got == integer && want == number || want == anything
}

func pathOf(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.kind == list:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case s.kind == mapping:
			b.WriteString("[" + s.name + "]")
		case b.Len() > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}
