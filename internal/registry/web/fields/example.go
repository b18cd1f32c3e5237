package fields

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// maxExampleValues is the maximum number of values of an example.
const maxExampleValues = 500

// Example returns the fields of a resource that a schema requires, with values that its types, enumerations, limits and
// formats allow; nil if there is no such value, or if there are too many. Rules can require more, so the caller
// validates the resource; see [Optional]. The resource also has the field with the path also, unless it is empty. The
// resource has the values of JSON.
func Example(schema *props, also []string) map[string]any {
	if schema == nil {
		return nil
	}
	e, want := exampler{}, wantedFields(schema)
	want.add(also)
	out, ok := e.object(schema, want, 0)
	if !ok {
		return nil
	}
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(out, name)
	}
	return out
}

// Optional returns the paths of the fields that a schema does not require in the object at a path, sorted. In the path,
// an item of a list has no name of its own.
func Optional(schema *props, path []string) [][]string {
	for _, name := range path {
		if schema == nil {
			return nil
		}
		child, known := schema.Properties[name]
		if !known {
			return nil
		}
		if schema = &child; child.Type == "array" {
			schema = itemsOf(&child)
		}
	}
	if schema == nil {
		return nil
	}
	var out [][]string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(schema.Required, name) {
			out = append(out, append(slices.Clone(path), name))
		}
	}
	return out
}

// wanted are fields to set, with those below them.
type wanted map[string]wanted

// add adds the path of a field.
func (w wanted) add(path []string) {
	if len(path) == 0 {
		return
	}
	if w[path[0]] == nil {
		w[path[0]] = wanted{}
	}
	w[path[0]].add(path[1:])
}

// wantedFields returns the specification, and the fields that rules of generated Providers require.
func wantedFields(schema *props) wanted {
	out := wanted{}
	spec, ok := schema.Properties["spec"]
	if !ok {
		return out
	}
	out.add([]string{"spec"})
	for _, r := range rules(&spec) {
		if m := requiredParameter().FindStringSubmatch(r.Words); m != nil {
			out.add(append([]string{"spec", "forProvider"}, strings.Split(m[1], ".")...))
		}
	}
	return out
}

// exampler counts the values of an example.
type exampler struct{ values int }

// value returns a value of a schema, and false if none is known.
func (e *exampler) value(s *props, want wanted, depth int) (any, bool) {
	if e.values++; e.values > maxExampleValues || depth > MaxDepth {
		return nil, false
	}
	switch {
	case s.Default != nil && len(want) == 0:
		return decoded(s.Default.Raw)
	case len(s.Enum) > 0:
		return enumerated(s)
	case s.XIntOrString:
		return int64(1), true
	case s.Type == "object", s.Type == "" && len(s.Properties) > 0:
		return e.object(s, want, depth)
	case s.Type == "array":
		return e.list(s, want, depth)
	case s.Type == "string":
		return exampleText(s)
	case s.Type == "integer", s.Type == "number":
		return exampleNumber(s)
	case s.Type == "boolean":
		return true, true
	}
	return map[string]any{}, keepsUnknown(s)
}

// decoded returns a JSON value, with integers as they are.
func decoded(raw []byte) (any, bool) {
	var out any
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out)
	return out, err == nil
}

// enumerated returns the first allowed value that is not empty.
func enumerated(s *props) (any, bool) {
	for _, allowed := range s.Enum {
		if v, ok := decoded(allowed.Raw); ok && v != nil && v != "" {
			return v, true
		}
	}
	return nil, false
}

// object returns an object with the required and the wanted fields. A required field with a default is omitted.
func (e *exampler) object(s *props, want wanted, depth int) (map[string]any, bool) {
	out := map[string]any{}
	names := slices.Clone(s.Required)
	for name := range want {
		names = append(names, name)
	}
	names = append(names, alternative(s)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		child, known := s.Properties[name]
		if !known || child.Default != nil && want[name] == nil {
			continue
		}
		v, ok := e.value(&child, want[name], depth+1)
		if !ok {
			return nil, false
		}
		out[name] = v
	}
	if s.XEmbeddedResource {
		addIdentity(out)
	}
	if s.MinProperties != nil && int64(len(out)) < *s.MinProperties {
		return out, e.addKey(out, s, depth)
	}
	return out, true
}

// addIdentity adds the fields that every resource in a field needs.
func addIdentity(out map[string]any) {
	for name, value := range map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "example",
	}} {
		if _, isSet := out[name]; !isSet {
			out[name] = value
		}
	}
}

// alternative returns the fields that the first of several alternative schemas requires, and those of additional
// schemas.
func alternative(s *props) []string {
	var out []string
	for _, all := range [][]props{s.OneOf, s.AnyOf} {
		if len(all) > 0 {
			out = append(out, all[0].Required...)
		}
	}
	for i := range s.AllOf {
		out = append(out, s.AllOf[i].Required...)
		out = append(out, alternative(&s.AllOf[i])...)
	}
	return out
}

// addKey adds a key to a map, or a field to an object, that needs one.
func (e *exampler) addKey(out map[string]any, s *props, depth int) bool {
	if *s.MinProperties-int64(len(out)) > 1 {
		return false
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		v, ok := e.value(s.AdditionalProperties.Schema, nil, depth+1)
		out["key"] = v
		return ok
	}
	for _, f := range children(s, "", MaxDepth) {
		if _, known := out[f.Name]; !known {
			child := s.Properties[f.Name]
			v, ok := e.value(&child, nil, depth+1)
			out[f.Name] = v
			return ok
		}
	}
	return false
}

// list returns a list with the minimum number of items, at least one if one is allowed.
func (e *exampler) list(s *props, want wanted, depth int) (any, bool) {
	n := int64(1)
	if s.MinItems != nil {
		n = max(n, *s.MinItems)
	}
	if s.MaxItems != nil {
		n = min(n, *s.MaxItems)
	}
	items := itemsOf(s)
	out := []any{}
	if items == nil {
		return out, s.MinItems == nil || *s.MinItems <= 0
	}
	for int64(len(out)) < n {
		v, ok := e.value(items, want, depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// exampleFormats are values of the formats that API servers validate.
var exampleFormats = map[string]string{
	"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "byte": "ZXhhbXBsZQ==", "uri": "https://example.org",
	"hostname": "example.org",
	"ipv4":     "192.0.2.1", "ipv6": "2001:db8::1", "cidr": "192.0.2.0/24", "mac": "00:00:5e:00:53:01",
	"email": "user@example.org", "duration": "1h",
	"uuid": "00000000-0000-4000-8000-000000000000", "uuid4": "00000000-0000-4000-8000-000000000000",
}

// exampleTexts are common values of strings with a pattern.
var exampleTexts = []string{
	"example", "example-1", "Example", "EXAMPLE", "example_1", "a", "A", "1", "10", "1.0", "1.0.0", "v1", "v1.0.0", "1h",
	"1h0m0s", "60s", "1Gi", "100m", "10Mi", "1GB",
	"example.org", "https://example.org", "/example", "/", "example/example", "example.org/example", "user@example.org",
	"example.org/v1", "v1/Example",
	"192.0.2.0/24", "192.0.2.1", "2001:db8::/32", "2026-01-01", "2026-01-01T00:00:00Z", "00:00", "mon:00:00-mon:01:00",
	"00:00-01:00", "us-east-1", "#ffffff",
	"arn:aws:iam::123456789012:role/example", "123456789012", "00000000-0000-4000-8000-000000000000",
	"0123456789abcdef0123456789abcdef", "ocid1.example.oc1..a",
	"sha256:0000000000000000000000000000000000000000000000000000000000000000", "projects/example",
	"projects/example/locations/example", "oci://example.org/example", "git@example.org:example/example.git",
}

// exampleText returns a text with the format, the pattern and the length of a schema.
func exampleText(s *props) (any, bool) {
	candidates := exampleTexts
	if format, ok := exampleFormats[s.Format]; ok {
		candidates = []string{format}
	}
	var pattern *regexp.Regexp
	if s.Pattern != "" {
		var err error
		if pattern, err = regexp.Compile(s.Pattern); err != nil {
			return nil, false
		}
	}
	for _, c := range candidates {
		if c = fitted(c, s); c != "" && (pattern == nil || pattern.MatchString(c)) {
			return c, true
		}
	}
	return nil, false
}

// fitted returns a text in the length that a schema allows; empty if there is none.
func fitted(text string, s *props) string {
	const longest = 1000
	if s.MinLength != nil && int64(len(text)) < *s.MinLength && *s.MinLength <= longest {
		text += strings.Repeat("a", int(*s.MinLength)-len(text))
	}
	switch {
	case s.MinLength != nil && int64(len(text)) < *s.MinLength:
		return ""
	case s.MaxLength != nil && int64(len(text)) > max(0, *s.MaxLength):
		return text[:max(0, *s.MaxLength)]
	}
	return text
}

// exampleNumber returns the number in the limits of a schema that is nearest to 1.
func exampleNumber(s *props) (any, bool) {
	v, step := 1.0, 1.0
	if s.MultipleOf != nil && *s.MultipleOf > 0 {
		step = *s.MultipleOf
	}
	if s.Minimum != nil && v < *s.Minimum {
		v = *s.Minimum
	}
	if s.Maximum != nil && v > *s.Maximum {
		v = math.Floor(*s.Maximum/step) * step
	}
	v = math.Ceil(v/step) * step
	switch {
	case s.Minimum != nil && s.ExclusiveMinimum && v <= *s.Minimum:
		v += step
	case s.Maximum != nil && s.ExclusiveMaximum && v >= *s.Maximum:
		v -= step
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return int64(v), true
	}
	return v, s.Type == "number"
}
