package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/xpkg-dev/xpkg/internal/dependency"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/preview"
)

// fewOnTerminal is how many objects of one action are named on a terminal.
const fewOnTerminal = 10

// planText writes a plan for people: what changes and its sum, with what stays as
// it is counted and not named.
type planText struct {
	w *tabwriter.Writer
	// most is how many objects of one action are named; 0 names all.
	most int
}

// writePlan writes a plan. Long lists are cut where they would fill a terminal.
func writePlan(w io.Writer, p *preview.Plan) error {
	t := planText{w: tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)}
	if isTerminal(w) {
		t.most = fewOnTerminal
	}
	t.line("%s %s/%s", p.Operation, strings.ToLower(p.Package.Kind), p.Package.Name)
	t.version("from", p.Package.From)
	t.version("to", p.Package.To)
	t.revisions(p.Revisions)
	if p.Incompatible != "" {
		t.title("refused")
		t.line("  %s", p.Incompatible)
	}
	t.objects(p.Objects)
	t.resources(p)
	t.dependencies(p.Dependencies)
	t.notes(p.Warnings)
	t.line("")
	t.line("%s", summary(p))
	return t.w.Flush()
}

func (t planText) line(format string, args ...any) {
	// The writer keeps its first error until Flush.
	_, _ = fmt.Fprintf(t.w, "%s\n", safe(fmt.Sprintf(format, args...)))
}

// row is a line of cells that are aligned with those of the lines around it.
func (t planText) row(cells ...string) {
	clean := make([]string, len(cells))
	for i, c := range cells {
		clean[i] = strings.ReplaceAll(safe(c), "\n", " ")
	}
	_, _ = fmt.Fprintf(t.w, "  %s\n", strings.Join(clean, "\t"))
}

func (t planText) title(s string) {
	t.line("")
	t.line("%s:", s)
}

func (t planText) version(word string, v *preview.Version) {
	if v != nil {
		t.row(word, v.String())
	}
}

func (t planText) revisions(all []preview.RevisionChange) {
	if len(all) == 0 {
		return
	}
	t.title("revisions")
	for _, r := range all {
		about := string(r.State)
		if r.Number > 0 {
			about += fmt.Sprintf(", number %d", r.Number)
		}
		t.row(string(r.Action), r.Name, about)
	}
}

func (t planText) objects(p plan.Plan) {
	if len(p.Changes)+len(p.Refusals) == 0 {
		return
	}
	t.title("objects")
	named := map[plan.Action]int{}
	for i, c := range p.Changes {
		named[c.Action]++
		if t.most == 0 || named[c.Action] <= t.most {
			t.row(string(c.Action), c.Ref.Kind+" "+c.Ref.Name)
		}
		if rest := left(p.Changes[i+1:], c.Action); t.most > 0 && named[c.Action] == t.most && rest > 0 {
			t.row(string(c.Action), fmt.Sprintf("and %d more (xpkg plan -o json shows all)", rest))
		}
	}
	for i, r := range p.Refusals {
		if t.most > 0 && i == t.most {
			t.row("refuse", fmt.Sprintf("and %d more (xpkg plan -o json shows all)", len(p.Refusals)-i))
			break
		}
		t.row("refuse", r.Ref.Kind+" "+r.Ref.Name+": "+r.Reason)
	}
}

func left(changes []plan.Change, a plan.Action) (n int) {
	for _, c := range changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

func (t planText) resources(p *preview.Plan) {
	if len(p.Resources) == 0 {
		return
	}
	t.title("custom resources that go with their definitions")
	for _, r := range p.Resources {
		if r.Unknown != "" {
			t.row("?", r.Definition, r.Unknown)
			continue
		}
		t.row(fmt.Sprint(r.Count), r.Definition)
	}
}

func (t planText) dependencies(all []preview.Dependency) {
	if len(all) == 0 {
		return
	}
	t.title("dependencies")
	for _, d := range all {
		about := ""
		if d.State == dependency.Unfit {
			about = "installed is " + d.Installed
		}
		t.row(string(d.State), strings.TrimSpace(d.Package+" "+d.Constraint), about)
	}
}

func (t planText) notes(all []string) {
	if len(all) == 0 {
		return
	}
	t.title("notes")
	for _, n := range all {
		t.line("  - %s", strings.ReplaceAll(n, "\n", " "))
	}
}

// summary is the sum of a plan in one line.
func summary(p *preview.Plan) string {
	unchanged := plural(p.Objects.Unchanged, "object") + " unchanged"
	if !p.Pending() {
		return "Nothing to do: " + unchanged + "."
	}
	if p.Incompatible != "" {
		return "The package does not fit: no object is changed."
	}
	if n := len(p.Objects.Refusals); n > 0 {
		return plural(n, "object") + " refused: no object is changed."
	}
	counts := map[plan.Action]int{}
	for _, c := range p.Objects.Changes {
		counts[c.Action]++
	}
	var parts []string
	for _, a := range []plan.Action{plan.Create, plan.Update, plan.Adopt, plan.TakeOver, plan.Correct, plan.Own, plan.Release, plan.Delete, plan.Leave} {
		if counts[a] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", counts[a], a))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no object changes"}
	}
	text := strings.Join(parts, ", ") + "; " + unchanged + "."
	if resources, uncounted := p.Lost(); resources > 0 || uncounted > 0 {
		text += " " + lost(resources, uncounted)
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// lost says how many custom resources go.
func lost(resources int64, uncounted int) string {
	text := plural(int(resources), "custom resource") + " will be deleted"
	if uncounted > 0 {
		text += fmt.Sprintf(", and those of %s that cannot be counted", plural(uncounted, "definition"))
	}
	return text + "."
}
