package fields

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// constraints returns the limits of a value in words.
func constraints(s *props) []string {
	var out []string
	add := func(texts ...string) {
		for _, t := range texts {
			if t != "" {
				out = append(out, t)
			}
		}
	}
	add(
		between(s.MinLength, s.MaxLength, "character"), between(s.MinItems, s.MaxItems, "item"),
		between(s.MinProperties, s.MaxProperties, "key"), values(s),
	)
	if s.MultipleOf != nil {
		add("a multiple of " + number(*s.MultipleOf))
	}
	if s.Pattern != "" {
		add("matches " + s.Pattern)
	}
	if s.UniqueItems {
		add("no item twice")
	}
	if s.Nullable {
		add("can be null")
	}
	add(merge(s), alternatives(s))
	if s.Not != nil {
		add("must not match a schema")
	}
	return out
}

// between returns the limits of a count in words.
func between(least, most *int64, noun string) string {
	switch {
	case least != nil && most != nil && *least == *most:
		return "exactly " + wording.Count(int(*least), noun)
	case least != nil && *least > 0 && most != nil:
		return fmt.Sprintf("%d to %s", *least, wording.Count(int(*most), noun))
	case least != nil && *least > 0:
		return "at least " + wording.Count(int(*least), noun)
	case most != nil:
		return "at most " + wording.Count(int(*most), noun)
	}
	return ""
}

// values returns the limits of a number in words.
func values(s *props) string {
	if s.Minimum != nil && s.Maximum != nil && !s.ExclusiveMinimum && !s.ExclusiveMaximum {
		return number(*s.Minimum) + " to " + number(*s.Maximum)
	}
	var parts []string
	if s.Minimum != nil {
		parts = append(parts, word(s.ExclusiveMinimum, "greater than ", "at least ")+number(*s.Minimum))
	}
	if s.Maximum != nil {
		parts = append(parts, word(s.ExclusiveMaximum, "less than ", "at most ")+number(*s.Maximum))
	}
	return strings.Join(parts, " and ")
}

func word(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// merge returns in words how clients that apply a part of a list or map change it.
func merge(s *props) string {
	switch {
	case s.XListType != nil && *s.XListType == "map":
		return "items are identified by " + strings.Join(s.XListMapKeys, ", ")
	case s.XListType != nil && *s.XListType == "set":
		return "no item twice"
	case s.XListType != nil && *s.XListType == "atomic", s.XMapType != nil && *s.XMapType == "atomic":
		return "replaced as a whole"
	}
	return ""
}

// alternatives returns the combinations of fields that oneOf, anyOf and allOf allow. Schemas of integer or string use
// anyOf only for its type.
func alternatives(s *props) string {
	var parts []string
	add := func(words string, all []props) {
		if len(all) == 0 || s.XIntOrString {
			return
		}
		var required []string
		for _, a := range all {
			if len(a.Required) > 0 {
				required = append(required, strings.Join(a.Required, " and "))
			}
		}
		switch {
		case len(required) == len(all):
			parts = append(parts, words+" "+strings.Join(required, ", "))
		default:
			parts = append(parts, words+" "+wording.Count(len(all), "schema"))
		}
	}
	add("exactly one of", s.OneOf)
	add("at least one of", s.AnyOf)
	add("all of", s.AllOf)
	return strings.Join(parts, "; ")
}
