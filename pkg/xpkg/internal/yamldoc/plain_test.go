package yamldoc

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// hardening: D6
func TestPlainScalars(t *testing.T) {
	for in, want := range map[string]string{
		"abc": `"abc"`, "~": "null", "null": "null", "Null": "null", "nULL": `"nULL"`,
		"yes": "true", "No": "false", "on": "true", "OFF": "false", "y": "true", "n": "false", "yEs": `"yEs"`, "NO": "false",
		"0777": "511", "0o17": "15", "0x1F": "31", "-0x1F": "-31", "0b11": "3", "0b-11": "-3", "-0b11": "-3", "09": "9",
		"1_000": "1000", "+5": "5", "-0": "0",
		"9223372036854775807": "9223372036854775807", "9223372036854775808": "9223372036854775808",
		"18446744073709551615": "18446744073709551615",
		"18446744073709551616": "18446744073709552000", "9007199254740993": "9007199254740993",
		"1.5": "1.5", ".5": "0.5", "5.": "5", "1e3": "1000", "1E-7": "1e-7", "1e400": `"1e400"`, "-0.0": "-0",
		"1e21": "1e+21", ".": `"."`, "1.2.3": `"1.2.3"`, "v1": `"v1"`,
		"2001-01-01": `"2001-01-01"`, "2001-1-1 1:2:3": `"2001-1-1 1:2:3"`, "12:30:45": `"12:30:45"`, "1:30": `"1:30"`,
		"0x": `"0x"`, "-": `"-"`, "+": `"+"`, "<<": `"<<"`, "=": `"="`,
	} {
		got, ok := appendPlain(nil, []byte(in))
		if string(got) != want || !ok {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{".nan", ".NaN", ".inf", "-.Inf", "+.INF"} {
		if got, ok := appendPlain(nil, []byte(in)); ok {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// TestPlainScalarsAgree compares values and keys with sigs.k8s.io/yaml, on texts
// that look like numbers.
//
// hardening: D6
func TestPlainScalarsAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[-+]?[0-9]{1,25}`),
			rapid.StringMatching(`[-+.0-9eExXbBo_:]{1,12}`),
			rapid.StringMatching(`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([tT ][0-9:.]{1,9}Z?)?`),
			rapid.StringMatching(`[-+]?\.(inf|Inf|INF|nan|NaN|NAN)`),
			rapid.StringMatching(`[yYnNtTfFoO][a-zA-Z]{0,4}`),
		).Draw(r, "text")
		if strings.HasSuffix(text, ":") || text == "-" {
			return
		}
		agree(r, []byte("a: "+text+"\n"))
		agree(r, []byte(text+": a\n"))
		got, ok := appendPlain(nil, []byte(text))
		want, err := yaml.YAMLToJSONStrict([]byte("a: " + text))
		if err != nil {
			if ok {
				r.Fatalf("%s became %s, and sigs.k8s.io/yaml refuses it: %v", text, got, err)
			}
			return
		}
		if string(want) != `{"a":`+string(got)+"}" {
			r.Fatalf("%s became %s, want %s", text, got, want)
		}
	})
}
