package plantext

import (
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// fewInMarkdown is the maximum number of listed objects of each action in Markdown. Forges limit the size of a comment.
const fewInMarkdown = 100

// WriteMarkdown writes a plan as Markdown for a pull request: the summary first, then the parts that need a decision,
// and finally the details, folded.
func WriteMarkdown(w io.Writer, plans ...*planner.Plan) {
	var b strings.Builder
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		writeMarkdownPlan(&b, p)
	}
	switch len(plans) {
	case 0:
		fmt.Fprintln(&b, "Nothing to do.")
	case 1:
	default:
		fmt.Fprintf(&b, "\n%s\n", markdownText(total(plans)))
	}
	for _, text := range asked(plans) {
		fmt.Fprintf(&b, "\n%s\n", markdownText(text))
	}
	fmt.Fprint(w, b.String())
}

func writeMarkdownPlan(b *strings.Builder, p *planner.Plan) {
	t := pageOf(p, fewInMarkdown)
	fmt.Fprintf(b, "### Plan: %s\n\n%s\n", markdownText(t.heading), markdownText(t.summary))
	if len(t.versions) > 0 {
		fmt.Fprint(b, "\n| version | reference |\n|---|---|\n")
		for _, row := range t.versions {
			fmt.Fprintf(b, "| %s |\n", markdownCells(row, " | "))
		}
	}
	for _, details := range []bool{false, true} {
		for _, s := range t.sections {
			if s.details == details {
				s.writeMarkdown(b)
			}
		}
	}
}

func (s section) writeMarkdown(b *strings.Builder) {
	title := markdownText(s.title)
	if s.details {
		fmt.Fprintf(b, "\n<details><summary>%s (%d)</summary>\n\n", title, len(s.rows))
	} else {
		fmt.Fprintf(b, "\n**%s**\n\n", title)
	}
	for _, row := range s.rows {
		fmt.Fprintf(b, "- %s\n", markdownCells(inWords(row), " · "))
	}
	if s.details {
		fmt.Fprint(b, "\n</details>\n")
	}
}

// inWords returns a row without the signs at its beginning, which begin lists in Markdown.
func inWords(row []string) []string {
	switch {
	case len(row) > 1 && row[0] == "+":
		return append([]string{"add"}, row[1:]...)
	case len(row) > 1 && row[0] == "-":
		return append([]string{"remove"}, row[1:]...)
	case len(row) == 1:
		return []string{strings.TrimPrefix(row[0], "- ")}
	}
	return row
}

// markdownCells joins the cells that are not empty.
func markdownCells(cells []string, separator string) string {
	var out []string
	for _, c := range cells {
		if c != "" {
			out = append(out, markdownText(c))
		}
	}
	return strings.Join(out, separator)
}

// markdownText returns text in one line, without meaning in Markdown or HTML.
func markdownText(s string) string {
	return terminal.EscapeMarkdown(terminal.SafeLine(s))
}
