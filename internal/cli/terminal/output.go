package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/wording"
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

// WriteJSON writes a value as indented JSON, with [wording.Invisible] characters escaped.
func WriteJSON(w io.Writer, value any) error {
	raw, err := encodeJSON(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, escape(raw, escapable, func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf("\\u%04x\\u%04x", high, low)
	}))
	return err
}

// WriteYAML writes a value as YAML. A value with [wording.Invisible] characters is written in
// the form of JSON, because only quoted text can escape them.
func WriteYAML(w io.Writer, value any) error {
	raw, err := encodeJSON(value)
	if err != nil {
		return err
	}
	out := []byte(escape(raw, escapable, escapeHigh))
	if string(out) == raw {
		if out, err = yaml.JSONToYAML(out); err != nil {
			return err
		}
	}
	// The encoder of JSON escapes line separators, and the one of YAML does not. Tabs can be in indented text.
	if bytes.ContainsFunc(out, func(r rune) bool { return r != '\t' && escapable(r) }) {
		out = []byte(raw)
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

// escapable reports whether a character of JSON text has to be escaped. Outside of strings, JSON
// has none of them but line breaks. The encoder has replaced bytes that are not UTF-8.
func escapable(r rune) bool { return r != unicode.ReplacementChar && wording.Invisible(r) }

// WriteTable aligns rows under a header.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	tw := NewColumns(w, 3)
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
