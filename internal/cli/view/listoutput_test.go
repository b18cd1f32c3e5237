package view

import (
	"strings"
	"testing"
)

func TestListFormats(t *testing.T) {
	l := List{
		Value: map[string]any{"items": []any{map[string]any{"name": "a"}, map[string]any{"name": "b\u001b[31m"}}},
		Names: []string{"provider/a", "provider/b"},
		Table: Table{Header: []string{"NAME"}, WideHeader: []string{"SIZE"}, Rows: [][]string{{"a", "1"}, {"b\u001b", "22"}}},
	}
	for format, want := range map[ListFormat]string{
		"":                                 "NAME\na\nb\\u001b\n",
		"wide":                             "NAME      SIZE\na         1\nb\\u001b   22\n",
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
	var out strings.Builder
	if err := (ListOutputFlag{NoHeaders: true}).Print(&out, l); err != nil || out.String() != "a\nb\\u001b\n" {
		t.Errorf("without a header: got %q and %v", &out, err)
	}
	out.Reset()
	var messages strings.Builder
	if err := (ListOutputFlag{NoHeaders: true}).Print(&out, List{
		Table: Table{Header: []string{"NAME"}, Empty: "Nothing."}, Empty: &messages,
	}); err != nil || out.Len() > 0 || messages.Len() > 0 {
		t.Errorf("without rows and a header: got %q and %v", &out, err)
	}
	if err := (ListOutputFlag{}).Print(&out, List{
		Table: Table{Header: []string{"NAME"}, Empty: "Nothing."}, Empty: &messages,
	}); err != nil || out.Len() > 0 || messages.String() != "Nothing.\n" {
		t.Errorf("without rows: got %q and %v", &out, err)
	}
	for _, format := range []ListFormat{"yml", "jsonpath={.items", "jsonpath"} {
		if format.Validate() == nil {
			t.Errorf("%s is accepted", format)
		}
	}
}

// Rows that are written one at a time are aligned, also with wide and unsafe characters.
func TestRowsAreAligned(t *testing.T) {
	var out strings.Builder
	rows, err := Table{Header: []string{"NAME", "STATE"}, Rows: [][]string{{"provider/a", "True"}}}.Begin(&out)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]string{{}, {"provider/船", "False"}, {"a\u001b\n", "x"}, {"provider/longer", "True"}, {
		"b", "True",
	}} {
		if err := rows.Write(row...); err != nil {
			t.Fatal(err)
		}
	}
	want := "NAME         STATE\nprovider/a   True\nprovider/船   False\na\\u001b       x\nprovider/longer   True\nb                 True\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
