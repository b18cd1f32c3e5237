package crddiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// compareLimits compares numeric limits.
func (f field) compareLimits(a, b *schema) {
	for _, l := range []struct {
		name     string
		upper    bool
		from, to *float64
	}{
		{"maximum", true, a.Maximum, b.Maximum}, {"minimum", false, a.Minimum, b.Minimum},
		{"maxLength", true, number(a.MaxLength), number(b.MaxLength)},
		{"minLength", false, number(a.MinLength), number(b.MinLength)},
		{"maxItems", true, number(a.MaxItems), number(b.MaxItems)},
		{"minItems", false, number(a.MinItems), number(b.MinItems)},
		{"maxProperties", true, number(a.MaxProperties), number(b.MaxProperties)},
		{"minProperties", false, number(a.MinProperties), number(b.MinProperties)},
	} {
		// A missing limit is infinite. No length and no number of items is below zero.
		none := math.Inf(1)
		switch {
		case l.name == "minimum":
			none = math.Inf(-1)
		case !l.upper:
			none = 0
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

// stringFormats are the formats of strings that the API server validates; it ignores all others. It reads them without
// hyphens.
var stringFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn",
	"isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime",
	"k8sshortname", "k8slongname",
}

// enforcedFormat returns the format that the API server validates, and "" if there is none. The ranges of int64 and
// double are those of all numbers that it decodes.
func enforcedFormat(s *schema) string {
	format := s.Format
	enforced := false
	switch s.Type {
	case "integer":
		enforced = format == "int32"
	case "number":
		enforced = format == "float"
	case "", "string":
		format = strings.ReplaceAll(format, "-", "")
		enforced = slices.Contains(stringFormats, format)
	}
	if !enforced {
		return ""
	}
	return format
}

// compareTexts compares constraints whose values have no order.
func (f field) compareTexts(a, b *schema) {
	switch from, to := a.Pattern, b.Pattern; {
	case from == to:
	case to == "":
		f.add(Safe, ConstraintLoosened, "pattern", from, "", "pattern was removed")
	case from == "":
		f.tighten(ConstraintTightened, "pattern", "", to, "pattern was added")
	default:
		f.tighten(ConstraintChanged, "pattern", from, to, "pattern changed")
	}
	switch from, to := enforcedFormat(a), enforcedFormat(b); {
	case a.Format == b.Format && from == to:
	case b.Format == "":
		f.add(Safe, ConstraintLoosened, "format", a.Format, "", "format was removed")
	case to == from:
		f.add(Safe, ConstraintChanged, "format", a.Format, b.Format, "format changed; the API server accepts the same values")
	case to == "":
		f.add(
			Safe, ConstraintLoosened, "format", a.Format, b.Format,
			"format changed, and the API server does not enforce it any more",
		)
	case from == "" && a.Format == "":
		f.tighten(ConstraintTightened, "format", "", b.Format, "format was added")
	default:
		f.tighten(ConstraintChanged, "format", a.Format, b.Format, "format changed")
	}
}

// compareFlags compares constraints that are on or off.
func (f field) compareFlags(a, b *schema) {
	for _, l := range []struct {
		name     string
		from, to bool
	}{
		{"exclusiveMaximum", a.Maximum != nil && a.ExclusiveMaximum, b.Maximum != nil && b.ExclusiveMaximum},
		{"exclusiveMinimum", a.Minimum != nil && a.ExclusiveMinimum, b.Minimum != nil && b.ExclusiveMinimum},
		{"uniqueItems", a.UniqueItems, b.UniqueItems},
	} {
		switch {
		case !l.from && l.to:
			f.tighten(ConstraintTightened, l.name, "", "", "the value must be %s", l.name)
		case l.from && !l.to:
			f.add(Safe, ConstraintLoosened, l.name, "", "", "the value no longer has to be %s", l.name)
		}
	}
	f.compareNullable(a, b)
	switch from, to := keepsUnknown(a), keepsUnknown(b); {
	case from && !to && valuesOf(b) == nil:
		f.add(Breaking, UnknownFieldsPruned, "", "", "", "fields that the schema does not describe are dropped")
	case !from && to:
		f.add(Safe, UnknownFieldsKept, "", "", "", "fields that the schema does not describe are kept")
	}
	from, to := listType(a), listType(b)
	switch {
	case from == to:
	case to == "set" || strings.HasPrefix(to, "map"):
		f.tighten(
			MergeChanged, "x-kubernetes-list-type", from, to, "items must be unique, and clients merge them differently",
		)
	default:
		f.add(Care, MergeChanged, "x-kubernetes-list-type", from, to, "clients merge the items differently")
	}
	if from, to := mapType(a), mapType(b); from != to {
		f.add(Care, MergeChanged, "x-kubernetes-map-type", from, to, "clients merge the fields differently")
	}
}

// compareNullable compares whether a field accepts null, which the API server replaces by the default of a field that
// does not.
func (f field) compareNullable(a, b *schema) {
	const name = "not nullable"
	hasDefault := a.Default != nil && b.Default != nil
	switch {
	case a.Nullable == b.Nullable:
	case a.Nullable && hasDefault:
		f.add(Care, ConstraintTightened, name, "", "", "null is replaced by the default")
	case a.Nullable:
		f.tighten(ConstraintTightened, name, "", "", "the value must be not nullable")
	case hasDefault:
		f.add(Care, ConstraintLoosened, name, "", "", "null is no longer replaced by the default")
	default:
		f.add(Safe, ConstraintLoosened, name, "", "", "the value no longer has to be not nullable")
	}
}

// listType returns the merge behavior of a list, with its keys.
func listType(s *schema) string {
	t := value(s.XListType)
	if len(s.XListMapKeys) > 0 {
		t += " by " + strings.Join(slices.Sorted(slices.Values(s.XListMapKeys)), ", ")
	}
	if t == "atomic" {
		return ""
	}
	return t
}

// mapType returns the merge behavior of an object.
func mapType(s *schema) string {
	if t := value(s.XMapType); t != "granular" {
		return t
	}
	return ""
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

// ruleToken matches a string literal of CEL, and white space with comments between other tokens.
var ruleToken = lazyregexp.New(
	`(?s)[rR]'''.*?'''|[rR]""".*?"""|'''(?:\\.|.)*?'''|"""(?:\\.|.)*?"""|[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?:\s|//[^\n]*)+`,
)

// ruleText returns the expression of a rule in one line, without comments. Literals keep their white space.
func ruleText(r apiextensionsv1.ValidationRule) string {
	return strings.TrimSpace(ruleToken().ReplaceAllStringFunc(r.Rule, func(token string) string {
		if strings.ContainsAny(token[:1], `rR"'`) {
			return token
		}
		return " "
	}))
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
			f.add(
				Safe, RuleChanged, "optionalOldSelf", "", ruleText(*next), "a validation rule no longer applies to new objects",
			)
		}
		if was.Message != next.Message || was.MessageExpression != next.MessageExpression ||
			was.FieldPath != next.FieldPath || reasonOf(was) != reasonOf(next) {
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
	}{{"allOf", allOf(a), allOf(b)}, {"anyOf", anyOf(a), anyOf(b)}, {"oneOf", a.OneOf, b.OneOf}} {
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

// allOf and anyOf return the alternatives of a schema without the types of an integer or string, which
// x-kubernetes-int-or-string implies.
func allOf(s *schema) []schema {
	if !s.XIntOrString {
		return s.AllOf
	}
	return slices.DeleteFunc(slices.Clone(s.AllOf), func(b schema) bool {
		return reflect.DeepEqual(b, schema{
			AnyOf: intOrString,
		})
	})
}

func anyOf(s *schema) []schema {
	if s.XIntOrString && reflect.DeepEqual(s.AnyOf, intOrString) {
		return nil
	}
	return s.AnyOf
}

// intOrString are the alternatives of an integer or string in the form that the API server requires.
var intOrString = []schema{{Type: "integer"}, {Type: "string"}}

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
