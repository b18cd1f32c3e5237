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
	"unicode/utf8"

	"sigs.k8s.io/yaml"

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

// Print writes value as JSON or YAML or with a template if selected, and otherwise the output of table. The output contains no
// control characters that affect a terminal.
func (f OutputFlag) Print(w io.Writer, value any, table func(io.Writer) error) error {
	switch f.Output {
	case "json":
		return WriteJSON(w, value)
	case "yaml":
		return writeYAML(w, value)
	}
	if template, ok := strings.CutPrefix(string(f.Output), jsonPathPrefix); ok {
		return printText(w, func(w io.Writer) error { return writeJSONPath(w, template, value) })
	}
	return printText(w, table)
}

// pageText is text that is complete before it is written. A command shortens what a terminal shows without a pager.
type pageText struct {
	strings.Builder
	// shownBy is the writer that shows the text, or nil.
	shownBy io.Writer
}

// printText writes the output of table without control characters that affect a terminal.
func printText(w io.Writer, table func(io.Writer) error) error {
	stdout, ok := w.(*CheckedWriter)
	text := pageText{}
	if ok && stdout.Pager == "" {
		text.shownBy = stdout
	}
	err := table(&text)
	message := SafeText(text.String())
	if !ok {
		_, failed := io.WriteString(w, message)
		return errors.Join(err, failed)
	}
	return errors.Join(err, stdout.show(nameProgram(stdout.Program, message)))
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

// writeYAML writes a value as YAML. A value with [wording.Invisible] characters is written in
// the form of JSON, because only quoted text can escape them.
func writeYAML(w io.Writer, value any) error {
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

// WriteTable writes a table with aligned columns. A table without columns in its header has no header.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	tw := NewColumns(w, 3)
	if len(header) > 0 {
		rows = append([][]string{header}, rows...)
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(tw, strings.Join(safeCells(row), "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// safeCells returns cells for one line of a terminal.
func safeCells(row []string) []string {
	cells := make([]string, len(row))
	for i, c := range row {
		cells[i] = SafeLine(c)
	}
	return cells
}

// Rows writes the rows of a table one at a time. A column is as wide as its widest cell so far.
type Rows struct {
	w      io.Writer
	widths []int
}

// NewRows returns a table without rows whose columns are wide enough for the given ones.
func NewRows(w io.Writer, rows ...[]string) *Rows {
	r := &Rows{w: w}
	for _, row := range rows {
		r.widen(safeCells(row))
	}
	return r
}

// widen makes the columns wide enough for cells, and returns the widths of the cells.
func (r *Rows) widen(cells []string) []int {
	taken := make([]int, len(cells))
	for i, cell := range cells {
		if i == len(r.widths) {
			r.widths = append(r.widths, 0)
		}
		taken[i] = utf8.RuneCountInString(withFillers(cell))
		r.widths[i] = max(r.widths[i], taken[i])
	}
	return taken
}

// Write writes a row. A row without cells writes nothing.
func (r *Rows) Write(row ...string) error {
	if len(row) == 0 {
		return nil
	}
	cells := safeCells(row)
	taken := r.widen(cells)
	var line strings.Builder
	for i, cell := range cells {
		line.WriteString(cell)
		if i < len(cells)-1 {
			line.WriteString(strings.Repeat(" ", r.widths[i]-taken[i]+3))
		}
	}
	_, err := fmt.Fprintln(r.w, line.String())
	return err
}
