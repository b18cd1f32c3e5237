package plantext

import (
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
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
	out := textWriter{terminal.NewColumns(w, 2)}
	out.line(t.heading)
	out.rows(t.versions)
	for _, s := range t.sections {
		out.line("")
		out.line(s.title + ":")
		out.rows(s.rows)
	}
	out.line("")
	out.line(t.summary)
	return out.w.Flush()
}

type textWriter struct{ w *terminal.Columns }

func (t textWriter) line(s string) {
	// The writer keeps its first error until Flush.
	_, _ = fmt.Fprintf(t.w, "%s\n", terminal.Safe(s))
}

// rows writes rows of cells, which are aligned with each other.
func (t textWriter) rows(rows [][]string) {
	for _, cells := range rows {
		_, _ = fmt.Fprintf(t.w, "  %s\n", strings.TrimRight(strings.Join(cleanCells(cells), "\t"), "\t"))
	}
}

// cleanCells returns cells without characters that affect a terminal, each in one line.
func cleanCells(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.ReplaceAll(terminal.Safe(c), "\n", " ")
	}
	return out
}
