package terminal

import (
	"io"
	"strings"
	"testing"
)

func TestListFormats(t *testing.T) {
	l := List{
		Value: map[string]any{"items": []any{map[string]any{"name": "a"}, map[string]any{"name": "b\u001b[31m"}}},
		Names: []string{"provider/a", "provider/b"},
		Table: func(w io.Writer, wide bool) error {
			_, err := io.WriteString(w, map[bool]string{true: "wide\n", false: "table\n"}[wide])
			return err
		},
	}
	for format, want := range map[ListFormat]string{
		"":                                 "table\n",
		"wide":                             "wide\n",
		"name":                             "provider/a\nprovider/b\n",
		"jsonpath={.items[0].name}":        "a\n",
		"jsonpath=.items[0].name":          "a\n",
		"jsonpath=items[0].missing":        "\n",
		"jsonpath={.items[*].name}":        "a b\\u001b[31m\n",
		"jsonpath={range .items[*]}x{end}": "xx\n",
	} {
		if err := format.Validate(); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		var out strings.Builder
		if err := (ListOutputFlag{Output: format}).Print(&out, l); err != nil || out.String() != want {
			t.Errorf("%s: got %q and %v, want %q", format, &out, err, want)
		}
	}
	for _, format := range []ListFormat{"yml", "jsonpath={.items", "jsonpath"} {
		if format.Validate() == nil {
			t.Errorf("%s is accepted", format)
		}
	}
}
