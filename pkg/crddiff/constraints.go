package crddiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// compareLimits compares numeric limits.
func (f field) compareLimits(a, b *schema) {
	for _, l := range []struct {
		name     string
		upper    bool
		from, to *float64
	}{
		{"maximum", true, a.Maximum, b.Maximum}, {"minimum", false, a.Minimum, b.Minimum},
		{"maxLength", true, number(a.MaxLength), number(b.MaxLength)}, {"minLength", false, number(a.MinLength), number(b.MinLength)},
		{"maxItems", true, number(a.MaxItems), number(b.MaxItems)}, {"minItems", false, number(a.MinItems), number(b.MinItems)},
		{"maxProperties", true, number(a.MaxProperties), number(b.MaxProperties)},
		{"minProperties", false, number(a.MinProperties), number(b.MinProperties)},
	} {
		// A missing limit is infinite.
		none := math.Inf(-1)
		if l.upper {
			none = math.Inf(1)
		}
		from, to := valueOr(l.from, none), valueOr(l.to, none)
		switch order := cmp.Compare(from, to); {
		case order == 0:
		case (order > 0) == l.upper:
			f.tighten(ConstraintTightened, l.name, format(l.from), format(l.to), "%s is stricter", l.name)
		default:
			f.add(Safe, ConstraintLoosened, l.name, format(l.from), format(l.to), "%s is less strict", l.name)
		}
	}
	switch from, to := a.MultipleOf, b.MultipleOf; {
	case format(from) == format(to):
	case to == nil || from != nil && math.Mod(*from, *to) == 0:
		f.add(Safe, ConstraintLoosened, "multipleOf", format(from), format(to), "multipleOf is less strict")
	default:
		f.tighten(ConstraintTightened, "multipleOf", format(from), format(to), "multipleOf is stricter")
	}
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}

func valueOr(v *float64, none float64) float64 {
	if v == nil {
		return none
	}
	return *v
}

func format(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// enforcedFormats are the string and number formats that the API server validates; it ignores all others.
var enforcedFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn",
	"isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime",
	"date-time", "int32", "int64", "float", "double", "k8s-short-name", "k8s-long-name",
}

// compareTexts compares constraints whose values have no order.
func (f field) compareTexts(a, b *schema) {
	for _, t := range []struct{ name, from, to string }{{"pattern", a.Pattern, b.Pattern}, {"format", a.Format, b.Format}} {
		switch {
		case t.from == t.to:
		case t.to == "":
			f.add(Safe, ConstraintLoosened, t.name, t.from, "", "%s was removed", t.name)
		case t.name == "format" && !slices.Contains(enforcedFormats, t.to):
			f.add(Safe, ConstraintChanged, t.name, t.from, t.to, "format changed, which the API server does not enforce")
		case t.from == "":
			f.tighten(ConstraintTightened, t.name, "", t.to, "%s was added", t.name)
		default:
			f.tighten(ConstraintChanged, t.name, t.from, t.to, "%s changed", t.name)
		}
	}
}

// compareFlags compares constraints that are on or off.
func (f field) compareFlags(a, b *schema) {
	for _, l := range []struct {
		name     string
		from, to bool
	}{
		{"exclusiveMaximum", a.ExclusiveMaximum, b.ExclusiveMaximum}, {"exclusiveMinimum", a.ExclusiveMinimum, b.ExclusiveMinimum},
		{"uniqueItems", a.UniqueItems, b.UniqueItems}, {"not nullable", !a.Nullable, !b.Nullable},
	} {
		switch {
		case !l.from && l.to:
			f.tighten(ConstraintTightened, l.name, "", "", "the value must be %s", l.name)
		case l.from && !l.to:
			f.add(Safe, ConstraintLoosened, l.name, "", "", "the value no longer has to be %s", l.name)
		}
	}
	switch from, to := keepsUnknown(a), keepsUnknown(b); {
	case from && !to:
		f.add(Breaking, UnknownFieldsPruned, "", "", "", "fields that the schema does not describe are dropped")
	case !from && to:
		f.add(Safe, UnknownFieldsKept, "", "", "", "fields that the schema does not describe are kept")
	}
	from, to := listType(a), listType(b)
	switch {
	case from == to:
	case to == "set" || strings.HasPrefix(to, "map"):
		f.tighten(MergeChanged, "x-kubernetes-list-type", from, to, "items must be unique, and clients merge them differently")
	default:
		f.add(Care, MergeChanged, "x-kubernetes-list-type", from, to, "clients merge the items differently")
	}
	if from, to := value(a.XMapType), value(b.XMapType); from != to {
		f.add(Care, MergeChanged, "x-kubernetes-map-type", from, to, "clients merge the fields differently")
	}
}

// listType returns the merge behavior of a list, with its keys.
func listType(s *schema) string {
	t := value(s.XListType)
	if len(s.XListMapKeys) > 0 {
		t += " by " + strings.Join(s.XListMapKeys, ", ")
	}
	if t == "atomic" {
		return ""
	}
	return t
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// compareRules compares CEL validation rules.
func (f field) compareRules(a, b *schema) {
	rules := func(s *schema) (out []string) {
		for _, r := range s.XValidations {
			out = append(out, ruleText(r))
		}
		return out
	}
	from, to := rules(a), rules(b)
	for _, r := range without(to, from) {
		reason := "a validation rule was added"
		if strings.Contains(r, "oldSelf") {
			reason = "a validation rule for changes was added"
		}
		f.tighten(RuleAdded, "x-kubernetes-validations", "", r, "%s", reason)
	}
	for _, r := range without(from, to) {
		f.add(Safe, RuleRemoved, "x-kubernetes-validations", r, "", "a validation rule was removed")
	}
	f.compareRuleErrors(a, b)
}

// ruleText returns the expression of a rule in one line.
func ruleText(r apiextensionsv1.ValidationRule) string {
	return strings.Join(strings.Fields(r.Rule), " ")
}

// compareRuleErrors compares the errors of the rules that both schemas have, and the objects that they apply to.
func (f field) compareRuleErrors(a, b *schema) {
	// The first rule counts of several with the same text.
	former := map[string]*apiextensionsv1.ValidationRule{}
	for i := range slices.Backward(a.XValidations) {
		former[ruleText(a.XValidations[i])] = &a.XValidations[i]
	}
	for i := range b.XValidations {
		next := &b.XValidations[i]
		was := former[ruleText(*next)]
		if was == nil {
			continue
		}
		delete(former, ruleText(*next))
		if !isTrue(was.OptionalOldSelf) && isTrue(next.OptionalOldSelf) {
			f.tighten(RuleChanged, "optionalOldSelf", "", ruleText(*next), "a validation rule also applies to new objects")
		} else if isTrue(was.OptionalOldSelf) != isTrue(next.OptionalOldSelf) {
			f.add(Safe, RuleChanged, "optionalOldSelf", "", ruleText(*next), "a validation rule no longer applies to new objects")
		}
		if was.Message != next.Message || was.MessageExpression != next.MessageExpression || was.FieldPath != next.FieldPath || reasonOf(was) != reasonOf(next) {
			f.add(Safe, RuleChanged, "message", "", ruleText(*next), "the error of a validation rule changed")
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// reasonOf returns the reason in the errors of a rule.
func reasonOf(r *apiextensionsv1.ValidationRule) apiextensionsv1.FieldValueErrorReason {
	if r.Reason == nil {
		return apiextensionsv1.FieldValueInvalid
	}
	return *r.Reason
}

// compareAlternatives compares allOf, anyOf, oneOf and not.
func (f field) compareAlternatives(a, b *schema) {
	for _, l := range []struct {
		name     string
		from, to []schema
	}{{"allOf", a.AllOf, b.AllOf}, {"anyOf", a.AnyOf, b.AnyOf}, {"oneOf", a.OneOf, b.OneOf}} {
		from, to := branches(l.from), branches(l.to)
		gone, added := without(from, to), without(to, from)
		switch {
		case len(gone) == 0 && len(added) == 0:
		case l.name == "allOf" && len(added) == 0, len(to) == 0, l.name == "anyOf" && len(gone) == 0 && len(from) > 0:
			f.add(Safe, ConstraintLoosened, l.name, count(from), count(to), "%s is less strict", l.name)
		default:
			f.tighten(ConstraintChanged, l.name, count(from), count(to), "%s changed", l.name)
		}
	}
	var from, to []string
	if a.Not != nil {
		from = branches([]schema{*a.Not})
	}
	if b.Not != nil {
		to = branches([]schema{*b.Not})
	}
	switch {
	case slices.Equal(from, to):
	case len(to) == 0:
		f.add(Safe, ConstraintLoosened, "not", "", "", "not was removed")
	default:
		f.tighten(ConstraintChanged, "not", "", "", "not changed")
	}
}

// branches returns the schemas as JSON.
func branches(all []apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for i := range all {
		b, err := json.Marshal(&all[i])
		if err != nil {
			b = fmt.Appendf(nil, "%v", all[i])
		}
		out = append(out, string(b))
	}
	return out
}

func count(branches []string) string {
	if len(branches) == 0 {
		return ""
	}
	return fmt.Sprintf("%d alternatives", len(branches))
}
