package yamldoc

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// read returns the JSON of a text, or the code, line and message of its fault.
func read(text string, limits Limits) (json, code string, line int, what string) {
	out, _, err := NewReader(limits).JSON([]byte(text))
	if f := (*Fault)(nil); errors.As(err, &f) {
		return "", f.Code.Name, f.Line, f.What
	}
	return string(out), "", 0, ""
}

func TestToJSON(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"sorted keys":       {"b: 1\na: {d: 2, c: 3}\n", `{"a":{"c":3,"d":2},"b":1}`},
		"json":              {`{"b": [1, 2.50, "x\u0041", null], "a": {}}` + "\n", `{"a":{},"b":[1,2.5,"xA",null]}`},
		"html stays":        {"a: <b> & \u00a0\n", "{\"a\":\"<b> & \u00a0\"}"},
		"html in general":   {"a: &x <b> & \"\\\\u003c\"\nc: *x\n", `{"a":"<b> & \"\\\\u003c\"","c":"<b> & \"\\\\u003c\""}`},
		"escapes":           {`a: "\b\f\n\r\t\e\0\"\\\x7f"` + "\n", `{"a":"\b\f\n\r\t\u001b\u0000\"\\` + "\x7f" + `"}`},
		"crlf":              {"a: |\r\n  b\r\n  c\r\nd: 'e\r\n  f'\r\n", `{"a":"b\nc\n","d":"e f"}`},
		"alias":             {"a: &x {b: c}\nd: *x\n", `{"a":{"b":"c"},"d":{"b":"c"}}`},
		"complex key":       {"? a\n: b\n", `{"a":"b"}`},
		"list":              {"- a\n- b: c\n", `["a",{"b":"c"}]`},
		"scalar":            {"a\n", `"a"`},
		"numbers as keys":   {"1: a\n2.50: b\nyes: c\n0x10: d\n", `{"1":"a","16":"d","2.5":"b","true":"c"}`},
		"folded":            {"a: >\n  b\n  c\n\n  d\n   e\n  f\n", `{"a":"b c\nd\n e\nf\n"}`},
		"kept line ends":    {"a: |+\n  b\n\n\nc: d\n", `{"a":"b\n\n\n","c":"d"}`},
		"stripped line end": {"a: |-\n  b\n\n\nc: d\n", `{"a":"b","c":"d"}`},
		"indent indicator":  {"a: |2\n   b\n", `{"a":" b\n"}`},
		"null values":       {"a:\nb: ~\nc:\n- \n- d\n", `{"a":null,"b":null,"c":[null,"d"]}`},
		"separator":         {"--- # x\na: b\n", `{"a":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, code, _, what := read(c.in, Limits{})
			if got != c.want {
				t.Errorf("got %s %s %s, want %s", got, code, what, c.want)
			}
		})
	}
}

// hardening: D1, D2, D3, D5
func TestToJSONRefuses(t *testing.T) {
	small := Limits{Depth: 3, Nodes: 20, AliasNodes: 5, ScalarBytes: 10, ComplexBytes: 200, DocumentBytes: 300}
	for name, c := range map[string]struct {
		in   string
		code string
		line int
		what string
	}{
		"syntax":                {"a: b\nc: d: e\n", "InvalidYAML", 2, "mapping values are not allowed in this context"},
		"two values":            {"{a: b}\n{c: d}\n", "InvalidYAML", 1, "text after the end of the document"},
		"duplicate":             {"a: b\nc: d\na: e\n", "DuplicateKey", 3, `key "a" occurs twice`},
		"duplicate by an alias": {"a: &a a\n*a : b\n", "DuplicateKey", 1, `key "a" occurs twice`},
		"tag":                   {"a: !x b\n", "UnsupportedYAML", 1, `YAML tag "!x"`},
		"tag on a mapping":      {"a: !x\n  b: c\n", "UnsupportedYAML", 1, `YAML tag "!x"`},
		"merge key":             {"a: &x {b: c}\nd:\n  <<: *x\n", "UnsupportedYAML", 3, `merge key "<<"`},
		"not a number":          {"a: [.nan]\n", "UnsupportedYAML", 1, "the number .nan does not exist in JSON"},
		"null key":              {"~: a\n", "UnsupportedYAML", 1, `the key "~" is not a string`},
		"infinite key":          {".inf: a\n", "UnsupportedYAML", 1, ""},
		"large key":             {"1e99: a\n", "UnsupportedYAML", 1, ""},
		"mapping as a key":      {"? {a: b}\n: c\n", "UnsupportedYAML", 1, "a key that is a mapping or a sequence"},
		"depth": {
			"a:\n  b:\n    c:\n      d: e\n", "YAMLLimit", 4, "more than 3 levels of nesting (--limit-depth)",
		},
		"depth with anchor": {"a: &x {b: {c: {d: e}}}\n", "YAMLLimit", 1, "more than 3 levels of nesting (--limit-depth)"},
		"nodes": {
			strings.Repeat("- a\n", 20), "YAMLLimit", 20, "more than 20 keys and values in one document (--limit-nodes)",
		},
		"nodes with anchor": {
			strings.Repeat("- &x a\n", 20), "YAMLLimit", 20, "more than 20 keys and values in one document (--limit-nodes)",
		},
		"alias nodes": {
			"a: &x [1, 2]\nb: *x\nc: *x\n", "YAMLLimit", 3,
			"more than 5 keys and values after the expansion of the aliases of one document (--limit-alias-nodes)",
		},
		"alias of itself": {"a: &x [*x]\n", "YAMLLimit", 1, `anchor "x" contains itself`},
		"scalar": {
			"a: b\nc: 01234567890\n", "YAMLLimit", 2, "more than 10 bytes of one string (--limit-scalar-bytes)",
		},
		"scalar with anchor": {
			"a: &x b\nc: 01234567890\n", "YAMLLimit", 2, "more than 10 bytes of one string (--limit-scalar-bytes)",
		},
		"complex": {
			"a: &x b\n# " + strings.Repeat("x", 200) + "\n", "YAMLLimit", 0,
			"more than 200 bytes of one YAML document with anchors or other rare syntax (--limit-complex-bytes)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, code, line, what := read(c.in, small)
			if code != c.code || line != c.line || c.what != "" && what != c.what {
				t.Errorf("got %s%s at line %d: %s; want %s at line %d: %s", got, code, line, what, c.code, c.line, c.what)
			}
		})
	}
}

// A lenient reader agrees with sigs.k8s.io/yaml about duplicate keys, and reports them.
//
// hardening: D5
func TestLenientReaderKeepsTheLastOfDuplicateKeys(t *testing.T) {
	r := NewReader(Limits{})
	r.Lenient = true
	for text, want := range map[string]struct {
		json string
		line int
	}{
		"a: 1\na: 2\n":                 {`{"a":2}`, 2},
		"a:\n  b: 1\n  c: 2\n  b: 3\n": {`{"a":{"b":3,"c":2}}`, 4},
		"a: 1\nb: 2\n":                 {`{"a":1,"b":2}`, 0},
		"a: &x {b: 1, b: 2}\nc: *x\n":  {`{"a":{"b":2},"c":{"b":2}}`, 1},
	} {
		got, warning, err := r.JSON([]byte(text))
		line := 0
		if warning != nil {
			line = warning.Line
		}
		if err != nil || string(got) != want.json || line != want.line {
			t.Errorf("%q: got %s, warning %v, %v", text, got, warning, err)
		}
		if library, err := yaml.YAMLToJSON([]byte(text)); err != nil || string(library) != want.json {
			t.Errorf("%q: the library reads %s, %v", text, library, err)
		}
	}
	for _, text := range []string{"<<: {a: b}\n", "1: a\n\"1\": b\n", "true: a\n\"true\": b\n"} {
		if got, _, err := r.JSON([]byte(text)); err == nil {
			t.Errorf("a lenient reader reads %q as %s", text, got)
		}
	}
}

func TestAliasesOfLongStringsAreBounded(t *testing.T) {
	text := "a: &x " + strings.Repeat("x", 1000) + "\nb:\n" + strings.Repeat("- *x\n", 100)
	_, code, _, what := read(text, Limits{DocumentBytes: 50_000})
	if code != "YAMLLimit" || !strings.Contains(what, "--limit-document-bytes") {
		t.Errorf("got %s: %s", code, what)
	}
}

// TestTruncatedAnywhere cuts a document at every byte: the reader must never panic,
// and its two implementations must agree on the rest.
//
// hardening: D10
func TestTruncatedAnywhere(t *testing.T) {
	for _, seed := range fastSeeds {
		for i := range len(seed) {
			agree(t, []byte(seed[:i]+"\n"))
			read(seed[:i], Limits{})
			read(seed[i:], Limits{})
		}
	}
}

func TestLimitsAreClamped(t *testing.T) {
	if got := (Limits{Depth: 1 << 30}).withDefaults().Depth; got != MaxDepth {
		t.Errorf("depth is %d", got)
	}
	deep := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	if got, code, _, _ := read(deep+"\n", Limits{Depth: MaxDepth}); got != deep {
		t.Errorf("cannot read the deepest document there can be: %s", code)
	}
}
