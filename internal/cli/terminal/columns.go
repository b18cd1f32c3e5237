package terminal

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"

	"golang.org/x/text/width"
)

// Columns aligns columns that are separated by tabs, as [tabwriter.Writer] does, and also aligns
// wide characters, as in Chinese and Japanese text, which take two cells of a terminal. Text
// is written at Flush.
type Columns struct{ aligned *tabwriter.Writer }

// NewColumns returns columns with the given distance between columns, in cells.
func NewColumns(w io.Writer, distance int) *Columns {
	return &Columns{tabwriter.NewWriter(fillerRemover{w}, 0, 4, distance, ' ', 0)}
}

// filler is a placeholder for the second cell of a wide character while columns are aligned. It is
// not a valid character, so no text contains it.
const filler = "\uffff"

// Write adds complete lines.
func (c *Columns) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.aligned, withFillers(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the aligned text.
func (c *Columns) Flush() error { return c.aligned.Flush() }

func withFillers(s string) string {
	if !strings.ContainsFunc(s, isWide) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
		if isWide(r) {
			b.WriteString(filler)
		}
	}
	return b.String()
}

func isWide(r rune) bool {
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}

// fillerRemover removes fillers from the text that it writes.
type fillerRemover struct{ w io.Writer }

func (f fillerRemover) Write(p []byte) (int, error) {
	if _, err := f.w.Write(bytes.ReplaceAll(p, []byte(filler), nil)); err != nil {
		return 0, err
	}
	return len(p), nil
}
