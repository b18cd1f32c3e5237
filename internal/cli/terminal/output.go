package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"sigs.k8s.io/yaml"
)

// OutputFlag is the -o flag of commands that print objects.
type OutputFlag struct {
	Output string `short:"o" enum:",json,yaml" default:"" placeholder:"json|yaml" help:"Print objects as JSON or YAML instead of a table."`
}

// Print writes value as JSON or YAML if selected, and otherwise the output of table. Neither
// contains characters that act on a terminal.
func (f OutputFlag) Print(w io.Writer, value any, table func(io.Writer) error) error {
	switch f.Output {
	case "json":
		return WriteJSON(w, value)
	case "yaml":
		return WriteYAML(w, value)
	}
	var text strings.Builder
	err := table(&text)
	message := SafeText(text.String())
	if stdout, ok := w.(*CheckedWriter); ok {
		message = nameProgram(stdout.Program, message)
	}
	_, failed := io.WriteString(w, message)
	return errors.Join(err, failed)
}

// WriteJSON writes a value as indented JSON. Control characters and characters that reorder
// text are escaped.
func WriteJSON(w io.Writer, value any) error {
	raw, err := encodeJSON(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, escapeJSON(raw))
	return err
}

// WriteYAML writes a value as YAML. A value with control characters or characters that reorder
// text is written as JSON, which is YAML too, because only quoted text can escape them.
func WriteYAML(w io.Writer, value any) error {
	raw, err := encodeJSON(value)
	if err != nil {
		return err
	}
	if escaped := escapeJSON(raw); escaped != raw {
		_, err = io.WriteString(w, escaped)
		return err
	}
	out, err := yaml.JSONToYAML([]byte(raw))
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

func encodeJSON(value any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // constraints are full of ">"
	err := enc.Encode(value)
	return b.String(), err
}

// escapeJSON escapes the characters of JSON text that must not reach a terminal. Outside of
// strings, JSON has none of them but line breaks.
func escapeJSON(text string) string {
	if !strings.ContainsFunc(text, unsafe) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unsafe(r) && r != unicode.ReplacementChar {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// WriteTable aligns rows under a header.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = strings.ReplaceAll(Safe(c), "\n", " ")
		}
		if _, err := fmt.Fprintln(tw, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}
