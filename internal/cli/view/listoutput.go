// Package view prints the results of commands: as JSON, YAML or with a template, and as tables and text that fit on a
// terminal.
package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// ListOutputFlag is the -o flag of commands that print lists, with the formats of kubectl.
type ListOutputFlag struct {
	Output    ListFormat `short:"o" placeholder:"FORMAT" complete:"list-format" help:"Output format: json, yaml, name, wide, or jsonpath= and a template. Default is a table."`
	NoHeaders bool       `help:"Print the table without its header."`
}

// ListFormat is the format of a list. The empty format is a table.
type ListFormat string

const jsonPathPrefix = "jsonpath="

// ListFormats returns the formats, for completion. A template follows the last one.
func ListFormats() []string { return []string{"json", "yaml", "name", "wide", jsonPathPrefix} }

// Validate returns an error for an unknown format or an invalid template.
func (f ListFormat) Validate() error {
	return validateFormat(string(f), "json", "yaml", "name", "wide")
}

// validateFormat returns an error for a format that is neither empty nor one of the names nor a valid template.
func validateFormat(format string, names ...string) error {
	if format == "" || slices.Contains(names, format) {
		return nil
	}
	template, ok := strings.CutPrefix(format, jsonPathPrefix)
	if !ok {
		return fmt.Errorf("%q is not %s, or jsonpath= and a template", format, strings.Join(names, ", "))
	}
	_, err := parseJSONPath(template)
	return err
}

// List is a list that can be printed in all formats.
type List struct {
	// Value is the list for JSON and YAML.
	Value any
	// Names are the names of the items.
	Names []string
	// Table is the table.
	Table Table
	// Empty receives the line for a table without rows, as messages.
	Empty io.Writer
	// Text writes the list as text instead of as a table.
	Text func(w io.Writer)
}

// Print writes a list in the selected format. The output contains no control characters that affect a
// terminal.
func (f ListOutputFlag) Print(w io.Writer, l List) error {
	switch f.Output {
	case "", "wide":
	case "name":
		return terminal.Show(w, true, func(w io.Writer) {
			for _, name := range l.Names {
				fmt.Fprintln(w, name)
			}
		})
	default:
		return OutputFlag{ObjectFormat(f.Output)}.Print(w, l.Value, nil)
	}
	switch {
	case l.Text != nil:
	case len(l.Table.Rows) == 0 && f.NoHeaders:
		return nil // A script counts the lines.
	case len(l.Table.Rows) == 0 && l.Empty != nil:
		_, err := fmt.Fprintln(l.Empty, terminal.Safe(l.Table.Empty))
		return err
	default:
		l.Text = f.Selected(l.Table).Write
	}
	return terminal.Show(w, f.Output == "wide", l.Text)
}

// PrintText is like Print for a value that has a text in place of a table.
func (f ListOutputFlag) PrintText(w io.Writer, value any, names []string, text func(w io.Writer)) error {
	return f.Print(w, List{Value: value, Names: names, Text: text})
}

// Selected returns a table with the columns of the format.
func (f ListOutputFlag) Selected(t Table) Table {
	t.HidesHeader, t.IsWide = f.NoHeaders, f.Output == "wide"
	if t.IsWide {
		t.Header = slices.Concat(t.Header, t.WideHeader)
	}
	return t
}

// parseJSONPath parses a template as kubectl does: an expression needs neither braces nor a leading dot.
func parseJSONPath(template string) (*jsonpath.JSONPath, error) {
	switch {
	case strings.Contains(template, "{"):
	case strings.HasPrefix(template, "["):
		template = "{" + template + "}"
	default:
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	return path, path.Parse(template)
}

func writeJSONPath(w io.Writer, template string, value any) error {
	path, err := parseJSONPath(template)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var data any
	if err := json.Unmarshal(raw, &data); err != nil {
		return err
	}
	if err := path.Execute(w, data); err != nil {
		return terminal.ErrUsage.New(err, "cannot apply the template %s", template).
			WithDo("Compare the template with the fields of -o json.")
	}
	_, err = io.WriteString(w, "\n")
	return err
}
