package plantext

import (
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// fewOnTerminal is the maximum number of listed objects of each action on a terminal.
const fewOnTerminal = 10

// Write writes plans as text, with a blank line between them. On a terminal, it truncates long lists, and writes one line for each of many
// plans.
func Write(w io.Writer, plans ...*planner.Plan) error {
	most := 0
	if terminal.IsTerminal(w) {
		most = fewOnTerminal
		if len(plans) > wholeOnTerminal {
			return writeOverview(w, plans)
		}
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := pageOf(p, most).writeText(w); err != nil {
			return err
		}
	}
	if len(plans) > 1 {
		_, err := fmt.Fprintf(w, "\n%s\n", total(plans))
		return err
	}
	return nil
}

func (t *page) writeText(w io.Writer) error {
	out := textWriter{w: w}
	out.line(t.heading)
	out.rows(t.versions)
	for _, s := range t.sections {
		out.line("")
		out.line(s.title + ":")
		out.rows(s.rows)
	}
	out.line("")
	out.line(t.summary)
	return out.err
}

// textWriter writes lines and tables, until an error.
type textWriter struct {
	w   io.Writer
	err error
}

func (t *textWriter) line(s string) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, "%s\n", terminal.Safe(s))
	}
}

// rows writes rows of cells, which are aligned with each other.
func (t *textWriter) rows(rows [][]string) {
	if t.err == nil {
		t.err = view.Table{Rows: rows, Indent: "  ", Distance: 2}.Write(t.w)
	}
}
