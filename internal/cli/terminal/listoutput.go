package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// ListOutputFlag is the -o flag of commands that print lists, with the formats of kubectl.
type ListOutputFlag struct {
	Output ListFormat `short:"o" placeholder:"FORMAT" complete:"list-format" help:"Output format: json, yaml, name, wide, or jsonpath= and a template. Default is a table."`
}

// ListFormat is the format of a list. The empty format is a table.
type ListFormat string

const jsonPathPrefix = "jsonpath="

// ListFormats returns the formats, for completion. A template follows the last one.
func ListFormats() []string { return []string{"json", "yaml", "name", "wide", jsonPathPrefix} }

// Validate returns an error for an unknown format or an invalid template.
func (f ListFormat) Validate() error {
	switch f {
	case "", "json", "yaml", "name", "wide":
		return nil
	}
	template, ok := strings.CutPrefix(string(f), jsonPathPrefix)
	if !ok {
		return fmt.Errorf("%q is not json, yaml, name, wide, or jsonpath= and a template", string(f))
	}
	_, err := parseJSONPath(template)
	return err
}

// List is a list in all its formats.
type List struct {
	// Value is the list for JSON and YAML.
	Value any
	// Names are the names of the items.
	Names []string
	// Table writes the table, with more columns if it is wide.
	Table func(w io.Writer, wide bool) error
}

// Print writes a list in the selected format. The text contains no characters that act on a terminal.
func (f ListOutputFlag) Print(w io.Writer, l List) error {
	plain := OutputFlag{}
	switch f.Output {
	case "json", "yaml":
		plain.Output = string(f.Output)
	case "name":
		return plain.Print(w, nil, func(w io.Writer) error {
			for _, name := range l.Names {
				fmt.Fprintln(w, name)
			}
			return nil
		})
	case "", "wide":
	default:
		return plain.Print(w, nil, func(w io.Writer) error {
			return writeJSONPath(w, strings.TrimPrefix(string(f.Output), jsonPathPrefix), l.Value)
		})
	}
	return plain.Print(w, l.Value, func(w io.Writer) error { return l.Table(w, f.Output == "wide") })
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
		return ErrUsage.New(err, "cannot apply the template %s", template).WithDo("Compare the template with the fields of -o json.")
	}
	_, err = io.WriteString(w, "\n")
	return err
}
