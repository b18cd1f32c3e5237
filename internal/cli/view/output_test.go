package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// TestOutputIsSafe proves that objects reach a terminal without control characters, and that
// they have the same value when they are read again.
//
// hardening: E4, L1
func TestOutputIsSafe(t *testing.T) {
	for name, text := range map[string]string{
		"plain": "a > b: c\nd\te", "bell": "\a", "escape": "\x1b[31m", "DEL": "\u007f", "C1": "\u009b31m",
		"bidi": "\u202eabc\u2066", "backslash": `\\u0007`,
		"carriage return": "a\rb", "null": "\x00", "zero width": "a\u200bb\ufeff", "tags": "a\U000e0041\U000e007f",
		"variation": "a\ufe0f\U000e0100", "separator": "a\u2028b\u2029",
		"soft hyphen": "a\u00adb",
	} {
		value := map[string]any{"text": text, "raw": json.RawMessage(`{"x": ` + mustJSON(t, text) + `}`)}
		for format, read := range map[string]func([]byte, any) error{
			"json": json.Unmarshal,
			"yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) },
		} {
			var out bytes.Buffer
			if err := (OutputFlag{Output: ObjectFormat(format)}).Print(&out, value, nil); err != nil {
				t.Errorf("%s as %s: %v", name, format, err)
				continue
			}
			if strings.ContainsFunc(out.String(), wording.Invisible) {
				t.Errorf("%s as %s: %q", name, format, out.String())
			}
			var got struct {
				Text string `json:"text"`
				Raw  struct {
					X string `json:"x"`
				} `json:"raw"`
			}
			if err := read(out.Bytes(), &got); err != nil || got.Text != text || got.Raw.X != text {
				t.Errorf("%s as %s: read back %q and %q, %v:\n%s", name, format, got.Text, got.Raw.X, err, out.String())
			}
		}
	}
}

func mustJSON(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Text output contains no characters that act on a terminal either, whether or not a command escapes them itself.
//
// hardening: E4, L1
func TestTextOutputIsSafe(t *testing.T) {
	var out bytes.Buffer
	err := OutputFlag{}.Print(&out, nil, func(w io.Writer) {
		fmt.Fprint(w, "NAME\tSTATE\na\x1b[2J\tb\u202e\u009b\r\u200b\U000e0041\n")
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "NAME\tSTATE\na\\u001b[2J\tb\\u202e\\u009b\\u000d\\u200b\\U000e0041\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
