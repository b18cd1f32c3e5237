package xpkg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// EncodeDocument returns an object, given as JSON, as a document of a package. Characters that must not be in a package
// stay escaped, in JSON: YAML encoders write line separators as they are, and refuse other such characters.
func EncodeDocument(object []byte) ([]byte, error) {
	if !bytes.Contains(object, []byte(`\u202`)) && !bytes.ContainsFunc(object, mustEscape) {
		return yaml.JSONToYAML(object)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, object, "", "  "); err != nil {
		return nil, err
	}
	var out strings.Builder
	for _, r := range indented.String() {
		if mustEscape(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	out.WriteByte('\n')
	return []byte(out.String()), nil
}

// mustEscape reports whether a character is only allowed as an escape in a package. JSON encoders need not escape it.
func mustEscape(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
