package fields

import (
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// A Rule is a validation rule in the Common Expression Language.
type Rule struct {
	// Words describes the rule: the message of the author, or a description of the expression.
	Words string
	// Expression is the rule itself.
	Expression string
}

// forbidsChanges reports whether the rule allows no other value than the former one.
func (r Rule) forbidsChanges() bool {
	e := strings.Join(strings.Fields(r.Expression), "")
	return e == "self==oldSelf" || e == "oldSelf==self"
}

func rules(s *props) []Rule {
	var out []Rule
	for _, v := range s.XValidations {
		words := strings.TrimSpace(v.Message)
		if words == "" {
			words = inWords(v.Rule)
		}
		out = append(out, Rule{words, strings.TrimSpace(v.Rule)})
	}
	return out
}

var (
	ruleHas     = lazyregexp.New(`^has\((?:self|oldSelf)\.([\w.]+)\)$`)
	ruleNotHas  = lazyregexp.New(`^!has\((?:self|oldSelf)\.([\w.]+)\)$`)
	ruleCompare = lazyregexp.New(
		`^(self(?:\.[\w.]+)?|size\(self(?:\.[\w.]+)?\)|self(?:\.[\w.]+)?\.size\(\)) ?(==|!=|<=|>=|<|>) ?('[^']*'|"[^"]*"|[\w.]+)$`,
	)
	ruleMatches = lazyregexp.New(`^self(\.[\w.]+)?\.(matches|startsWith|endsWith|contains)\(('[^']*'|"[^"]*")\)$`)
)

// inWords describes an expression without a message. Expressions other than the common forms are described by their
// purpose only, because a wrong description is worse than none.
func inWords(expression string) string {
	e := strings.Join(strings.Fields(expression), " ")
	if (Rule{Expression: e}).forbidsChanges() {
		return "the value cannot be changed"
	}
	if words := termInWords(e); words != "" {
		return words
	}
	for _, join := range []struct{ operator, words string }{{" || ", " or "}, {" && ", " and "}} {
		if words := joinInWords(e, join.operator, join.words); words != "" {
			return words
		}
	}
	if strings.Contains(e, "oldSelf") {
		return "a change must satisfy the expression"
	}
	return "the value must satisfy the expression"
}

// joinInWords describes terms with one operator between all of them; empty if a term is not of a common form.
func joinInWords(e, operator, words string) string {
	var parts []string
	for term := range strings.SplitSeq(e, operator) {
		part := termInWords(strings.TrimSpace(term))
		if part == "" {
			return ""
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, words)
}

var comparisons = map[string]string{
	"==": "is", "!=": "is not", "<=": "is at most", ">=": "is at least", "<": "is less than", ">": "is greater than",
}

func termInWords(e string) string {
	if m := ruleHas().FindStringSubmatch(e); m != nil {
		return m[1] + " is set"
	}
	if m := ruleNotHas().FindStringSubmatch(e); m != nil {
		return m[1] + " is not set"
	}
	if m := ruleMatches().FindStringSubmatch(e); m != nil {
		verb := map[string]string{
			"matches": "matches", "startsWith": "starts with", "endsWith": "ends with", "contains": "contains",
		}[m[2]]
		return subject("self"+m[1]) + " " + verb + " " + strings.Trim(m[3], `'"`)
	}
	if m := ruleCompare().FindStringSubmatch(e); m != nil && !strings.HasPrefix(m[3], "oldSelf") &&
		!strings.HasPrefix(m[3], "self") {
		return subject(m[1]) + " " + comparisons[m[2]] + " " + strings.Trim(m[3], `'"`)
	}
	return ""
}

// subject returns an operand in words.
func subject(e string) string {
	if inner, ok := strings.CutPrefix(e, "size("); ok {
		return "the size of " + subject(strings.TrimSuffix(inner, ")"))
	}
	if inner, ok := strings.CutSuffix(e, ".size()"); ok {
		return "the size of " + subject(inner)
	}
	if name, ok := strings.CutPrefix(e, "self."); ok {
		return name
	}
	return "the value"
}

// requiredParameter is the message of the rule that generated Providers have for a field that is required unless the
// object only observes an external resource. Old ones omit the path of the parameters.
var requiredParameter = lazyregexp.New(`^(?:spec\.forProvider\.)?([\w.]+) is a required parameter$`)

// markRequiredParameters sets RequiredToCreate from the rules of the fields .spec and .spec.forProvider.
func markRequiredParameters(root *Field) {
	spec := root.Find(".spec")
	if spec == nil {
		return
	}
	for _, r := range spec.Rules {
		if m := requiredParameter().FindStringSubmatch(r.Words); m != nil {
			if f := root.Find(".spec.forProvider." + m[1]); f != nil {
				f.RequiredToCreate = true
			}
		}
	}
}
