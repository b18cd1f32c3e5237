package version

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// A Comparison is one part of a constraint, such as ">=v1.2". The semver library is slower,
// because it creates an error text for each version that does not match. A property test
// compares the results.
type Comparison struct {
	op string
	parts
}

// parseRange parses a constraint that compares with numbers only: alternatives of comparisons
// that must all hold. It leaves prereleases, wildcards and hyphen ranges to the library.
func parseRange(s string) ([][]Comparison, bool) {
	if len(s) > semver.MaxConstraintLen {
		return nil, false
	}
	var out [][]Comparison
	for _, alternative := range strings.Split(s, "||") {
		all, ok := parseAll(alternative)
		if !ok {
			return nil, false
		}
		out = append(out, all)
	}
	return out, true
}

func parseAll(s string) ([]Comparison, bool) {
	var all []Comparison
	s = strings.TrimSpace(s)
	for s != "" {
		end := 0
		for end < len(s) && strings.IndexByte("=!<>~^", s[end]) >= 0 {
			end++
		}
		c := Comparison{op: s[:end]}
		if !known(c.op) {
			return nil, false
		}
		s = strings.TrimLeft(s[end:], " ")
		end = strings.IndexAny(s, " ,")
		if end < 0 {
			end = len(s)
		}
		if !c.parse(s[:end]) {
			return nil, false
		}
		all = append(all, c)
		rest := strings.TrimLeft(s[end:], " ")
		if strings.HasPrefix(rest, ",") {
			if end < len(s) && s[end] == ' ' { // the library treats " ," differently
				return nil, false
			}
			if rest = strings.TrimLeft(rest[1:], " "); rest == "" {
				return nil, false
			}
		}
		s = rest
	}
	return all, len(all) > 0
}

func known(op string) bool {
	switch op {
	case "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^":
		return true
	}
	return false
}

// order compares a release with the numbers of the comparison. Missing numbers are 0.
func (c *Comparison) order(v *Version) int {
	return cmp.Or(cmp.Compare(v.major, c.number[0]), cmp.Compare(v.minor, c.number[1]), cmp.Compare(v.patch, c.number[2]))
}

// Below reports whether a release is lower than every release that the comparison accepts.
func (c *Comparison) Below(v *Version) bool {
	switch c.op {
	case "<", "<=", "=<":
		return false
	case ">":
		return !c.Accepts(v)
	}
	return c.order(v) < 0
}

// Contiguous reports whether the releases that the comparison accepts are consecutive.
func (c *Comparison) Contiguous() bool { return c.op != "!=" }

// Accepts reports whether a release satisfies the comparison.
func (c *Comparison) Accepts(v *Version) bool {
	partial := c.count < 3
	switch c.op {
	case "", "=":
		if partial {
			return c.tilde(v)
		}
		return c.order(v) == 0
	case "!=":
		if partial {
			return v.major != c.number[0] || c.count == 2 && v.minor != c.number[1]
		}
		return c.order(v) != 0
	case ">":
		return c.order(v) > 0 && !c.within(v)
	case "<":
		return c.order(v) < 0
	case ">=", "=>":
		return c.order(v) >= 0
	case "<=", "=<":
		return c.order(v) <= 0 || c.within(v)
	case "^":
		return c.caret(v)
	}
	return c.tilde(v)
}

// within reports whether a version starts with the numbers of a partial Comparison.
func (c *Comparison) within(v *Version) bool {
	return c.count < 3 && v.major == c.number[0] && (c.count == 1 || v.minor == c.number[1])
}

func (c *Comparison) tilde(v *Version) bool {
	if c.count == 3 && c.number == [3]uint64{} {
		return true // in the library, ~0.0.0 accepts everything
	}
	return c.order(v) >= 0 && v.major == c.number[0] && (c.count == 1 || v.minor == c.number[1])
}

func (c *Comparison) caret(v *Version) bool {
	switch {
	case c.order(v) < 0 || v.major != c.number[0]:
		return false
	case c.number[0] > 0 || c.count == 1:
		return true
	case v.minor != c.number[1]:
		return false
	}
	return c.number[1] > 0 || c.count == 2 || v.patch == c.number[2]
}
