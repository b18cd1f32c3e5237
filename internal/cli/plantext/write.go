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

// Write writes plans as text, with a blank line between them. On a terminal, it truncates long lists, and writes one
// line for each of many plans.
func Write(w io.Writer, plans ...*planner.Plan) {
	most := 0
	if terminal.IsTerminal(w) {
		most = fewOnTerminal
		if len(plans) > wholeOnTerminal {
			writeOverview(w, plans)
			writeAsked(w, plans)
			return
		}
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		pageOf(p, most).writeText(w)
	}
	if len(plans) > 1 {
		fmt.Fprintf(w, "\n%s\n", total(plans))
	}
	writeAsked(w, plans)
}

// writeAsked writes what the ChangePolicy asks of the whole change.
func writeAsked(w io.Writer, plans []*planner.Plan) {
	for _, text := range asked(plans) {
		textWriter{w}.line(text)
	}
}

// asked returns what the ChangePolicy asks of the change of all plans, as sentences.
func asked(plans []*planner.Plan) []string {
	var out []string
	for _, p := range plans {
		if p.Policy != nil {
			for _, text := range p.Policy.Texts() {
				out = append(out, "ChangePolicy: "+text+".")
			}
			break
		}
	}
	return out
}

func (t *page) writeText(w io.Writer) {
	out := textWriter{w}
	out.line(t.heading)
	out.rows(t.versions)
	for _, s := range t.sections {
		out.line("")
		out.line(s.title + ":")
		out.rows(s.rows)
	}
	out.line("")
	out.line(t.summary)
}

// textWriter writes lines and tables.
type textWriter struct{ w io.Writer }

func (t textWriter) line(s string) { fmt.Fprintln(t.w, terminal.Safe(s)) }

// rows writes rows of cells, which are aligned with each other.
func (t textWriter) rows(rows [][]string) {
	view.Table{Rows: rows, Indent: "  ", Distance: 2}.Write(t.w)
}
