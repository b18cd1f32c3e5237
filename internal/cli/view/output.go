package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// OutputFlag is the -o flag of commands that print objects.
type OutputFlag struct {
	Output ObjectFormat `short:"o" placeholder:"FORMAT" complete:"object-format" help:"Output format: json, yaml, or jsonpath= and a template. Default is text."`
}

// ObjectFormat is the format of objects. The empty format is text.
type ObjectFormat string

// ObjectFormats returns the formats, for completion. A template follows the last one.
func ObjectFormats() []string { return []string{"json", "yaml", jsonPathPrefix} }

// Validate returns an error for an unknown format or an invalid template.
func (f ObjectFormat) Validate() error { return validateFormat(string(f), "json", "yaml") }

// Print writes value as JSON or YAML or with a template if selected, and otherwise the output of table. The output
// contains no control characters that affect a terminal.
func (f OutputFlag) Print(w io.Writer, value any, table func(io.Writer)) error {
	switch f.Output {
	case "json":
		return WriteJSON(w, value)
	case "yaml":
		return writeYAML(w, value)
	}
	if template, ok := strings.CutPrefix(string(f.Output), jsonPathPrefix); ok {
		var text strings.Builder
		if err := writeJSONPath(&text, template, value); err != nil {
			return err
		}
		return terminal.Show(w, true, func(w io.Writer) { fmt.Fprint(w, text.String()) })
	}
	return terminal.Show(w, false, table)
}

// WriteJSON writes a value as indented JSON, with [wording.Invisible] characters escaped.
func WriteJSON(w io.Writer, value any) error {
	raw, err := encodeJSON(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, terminal.Escape(raw, escapable, func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf("\\u%04x\\u%04x", high, low)
	}))
	return err
}

// writeYAML writes a value as YAML. A value with [wording.Invisible] characters is written in
// the form of JSON, because only quoted text can escape them.
func writeYAML(w io.Writer, value any) error {
	raw, err := encodeJSON(value)
	if err != nil {
		return err
	}
	out := []byte(terminal.Escape(raw, escapable, terminal.EscapeHigh))
	if string(out) == raw {
		if out, err = yaml.JSONToYAML(out); err != nil {
			return err
		}
	}
	// The JSON encoder escapes line separators, but the YAML encoder does not. Indented text can contain
	// tabs.
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

// escapable reports whether a character of JSON text must be escaped. Outside of strings, JSON contains none
// of them except line breaks. The encoder has replaced invalid UTF-8.
func escapable(r rune) bool { return r != unicode.ReplacementChar && wording.Invisible(r) }
