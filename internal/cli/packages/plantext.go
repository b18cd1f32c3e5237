package packages

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// fewOnTerminal is the maximum number of listed objects of each action on a terminal.
const fewOnTerminal = 10

// planText writes a plan as text: the changes and their totals; unchanged objects are counted but not
// listed.
type planText struct {
	w *terminal.Columns
	// most is the maximum number of listed objects of each action; 0 means all.
	most int
}

// writePlan writes a plan. It truncates long lists on a terminal.
func writePlan(w io.Writer, p *planner.Plan) error {
	most := 0
	if terminal.IsTerminal(w) {
		most = fewOnTerminal
	}
	return writePlanText(w, p, most)
}

func writePlanText(w io.Writer, p *planner.Plan, most int) error {
	t := planText{w: terminal.NewColumns(w, 2), most: most}
	t.line("%s %s/%s", p.Operation, strings.ToLower(p.Package.Kind), p.Package.Name)
	t.version("from", p.Package.From)
	t.version("to", p.Package.To)
	t.fields("fields of the package", p.SpecChanges())
	t.fields("fields of the runtime configuration", p.RuntimeChanges)
	t.revisions(p.Revisions)
	if p.Incompatible != "" {
		t.title("refused")
		t.line("  %s", p.Incompatible)
	}
	t.runtime("the runtime", p.Runtime)
	t.permissions(p.Permissions)
	t.webhooks(p.Webhooks)
	t.objects(p.Objects)
	t.resources(p)
	t.dependencies(p.Dependencies)
	t.brings(p.AddedPackages)
	t.moves(p.AddedPackages)
	t.additions(p.AddedPackages)
	t.breaks(p.Breaks)
	t.orphans(p.Orphans)
	t.notes(p.Warnings)
	t.line("")
	t.line("%s", summary(p))
	return t.w.Flush()
}

func (t planText) line(format string, args ...any) {
	// The writer keeps its first error until Flush.
	_, _ = fmt.Fprintf(t.w, "%s\n", terminal.Safe(fmt.Sprintf(format, args...)))
}

// row writes a line of cells, which are aligned with adjacent rows.
func (t planText) row(cells ...string) {
	clean := make([]string, len(cells))
	for i, c := range cells {
		clean[i] = strings.ReplaceAll(terminal.Safe(c), "\n", " ")
	}
	_, _ = fmt.Fprintf(t.w, "  %s\n", strings.TrimRight(strings.Join(clean, "\t"), "\t"))
}

func (t planText) title(s string) {
	t.line("")
	t.line("%s:", s)
}

// runtime writes why the manager refuses a runtime.
func (t planText) runtime(name string, r *planner.RuntimeRefusal) {
	if r != nil {
		t.title(name)
		t.row("refuse", r.Code+": "+r.Reason)
	}
}

func (t planText) version(word string, v *planner.Version) {
	if v != nil {
		t.row(word, v.String())
	}
}

// fields writes changed fields.
func (t planText) fields(title string, all []planner.SpecChange) {
	if len(all) == 0 {
		return
	}
	t.title(title)
	for _, c := range all {
		t.row(c.Field, c.Was+" → "+c.Is)
	}
}

func (t planText) revisions(all []planner.RevisionChange) {
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
	switch {
	case len(p.Refusals) > 0:
		t.title("objects")
		t.refusals(p.Refusals)
	case len(p.Changes) > 0:
		t.title("objects")
		t.changes(p.Changes)
	}
}

func (t planText) changes(all []plan.Change) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b plan.Change) int {
		return cmp.Compare(slices.Index(actions(), a.Action), slices.Index(actions(), b.Action))
	})
	named := map[plan.Action]int{}
	for i, c := range all {
		named[c.Action]++
		if t.most > 0 && named[c.Action] > t.most {
			continue
		}
		about := ""
		if rewrites(c) {
			about = newContent
		}
		if len(c.PruneStored) > 0 {
			about += "; no resources are stored as " + strings.Join(c.PruneStored, ", ") + ", which is dropped"
		}
		t.row(string(c.Action), c.Ref.Kind+" "+c.Ref.Name, about)
		if rest := left(all[i+1:], c.Action); named[c.Action] == t.most && rest > 0 {
			t.row(string(c.Action), more(rest))
		}
	}
}

func (t planText) refusals(all []plan.Refusal) {
	for i, r := range all {
		if t.most > 0 && i == t.most {
			t.row("refuse", more(len(all)-i))
			return
		}
		t.row("refuse", r.Reason)
	}
}

func more(n int) string { return fmt.Sprintf("and %d more (xpkg plan -o json shows all)", n) }

func left(changes []plan.Change, a plan.Action) (n int) {
	for _, c := range changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

func (t planText) resources(p *planner.Plan) {
	if len(p.CustomResources) == 0 {
		return
	}
	t.title("custom resources deleted with their CRDs")
	for _, r := range p.CustomResources {
		if r.Unknown != "" {
			t.row("?", r.CRD, r.Unknown)
			continue
		}
		t.row(fmt.Sprint(r.Count), r.CRD)
	}
}

func (t planText) dependencies(all []planner.Dependency) {
	if len(all) == 0 {
		return
	}
	t.title("dependencies")
	for _, d := range all {
		about := ""
		switch d.State {
		case graph.Incompatible:
			about = "installed is " + d.Installed
		case graph.Absent:
			about = fmt.Sprintf("optional; xpkg install %s %s:TAG turns it on", cmp.Or(strings.ToLower(d.Kind), "KIND"), d.Package)
		case graph.Progressing:
			about = "requested is " + d.Installed
		}
		t.row(string(d.State), strings.TrimSpace(d.Package+" "+d.Constraint), about)
	}
}

func (t planText) brings(all []planner.AddedPackage) {
	all = slices.DeleteFunc(slices.Clone(all), func(b planner.AddedPackage) bool { return b.From != "" })
	if len(all) == 0 {
		return
	}
	t.title("installed with it")
	for _, b := range all {
		t.row(strings.ToLower(b.Kind), b.Reference, "for "+strings.Join(b.RequiredBy, ", "))
	}
}

func (t planText) moves(all []planner.AddedPackage) {
	all = slices.DeleteFunc(slices.Clone(all), func(b planner.AddedPackage) bool { return b.From == "" })
	if len(all) == 0 {
		return
	}
	t.title("moved with it")
	for _, b := range all {
		t.row(strings.ToLower(b.Kind)+"/"+b.Name, inventory.ShortVersion(b.From)+" → "+inventory.ShortVersion(b.Reference), "for "+strings.Join(b.RequiredBy, ", "))
	}
}

// additions writes the objects and the permissions of dependencies that are installed or moved.
func (t planText) additions(all []planner.AddedPackage) {
	for _, a := range all {
		if len(a.Objects.Changes) > 0 {
			t.title("objects of " + a.Short())
			t.changes(a.Objects.Changes)
		}
		t.runtime(a.Short(), a.Runtime)
		t.permissionsOf(a.Short(), a.Permissions)
	}
}

func (t planText) breaks(all []planner.Broken) {
	if len(all) == 0 {
		return
	}
	t.title("breaks")
	for _, b := range all {
		gets := "would not be installed"
		if b.Installed != "" {
			gets = "would be at " + b.Installed
		}
		t.row(strings.ToLower(b.Kind)+"/"+b.Name, strings.TrimSpace("needs "+b.Requires+" "+b.Constraint), gets)
	}
}

func (t planText) orphans(all []planner.Orphan) {
	if len(all) == 0 {
		return
	}
	t.title("no longer needed")
	for _, o := range all {
		about := "xpkg autoremove removes it"
		if o.Removed {
			about = "the manager removes it"
		}
		t.row(strings.ToLower(o.Kind)+"/"+o.Name, o.Reference, about)
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
