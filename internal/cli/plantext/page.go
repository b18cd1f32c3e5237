// Package plantext writes plans for people: as text for a terminal, and as Markdown for pull requests.
package plantext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// page is a plan as sections of rows. Unchanged objects are counted but not listed.
type page struct {
	heading  string
	versions [][]string
	sections []section
	summary  string
	// most is the maximum number of listed objects of each action; 0 means all.
	most int
}

// section is a part of a plan, with rows of cells.
type section struct {
	title string
	rows  [][]string
	// details reports whether the section repeats in detail what the summary contains.
	details bool
}

// pageOf returns the page of a plan.
func pageOf(p *planner.Plan, most int) *page {
	t := &page{
		heading: fmt.Sprintf("%s %s/%s", p.Verb(), strings.ToLower(p.Package.Kind), p.Package.Name), summary: summary(p),
		most: most,
	}
	t.version("from", p.Package.From)
	t.version("to", p.Package.To)
	if p.Kinds != nil {
		t.versions = append(t.versions, []string{"kinds", p.Kinds.String()})
	}
	t.fields("fields of the package", p.SpecChanges())
	t.fields("fields of the runtime configuration", p.RuntimeChanges)
	t.revisions(p.Revisions)
	t.findings(p.Findings)
	t.permissions(p.Permissions)
	t.webhooks(p.Webhooks)
	t.objects(p.Objects)
	t.leftOut(p.AllLeftOut())
	t.kinds("changed fields of kinds", p.KindChanges)
	t.judgements("custom resources of changed kinds", p.Objects.Judgements)
	t.resources(p)
	t.dependencies(p.Dependencies)
	t.signatures(p)
	t.brings(p.AddedPackages)
	t.moves(p.AddedPackages)
	t.additions(p.AddedPackages)
	t.breaks(p.Breaks)
	t.orphans(p.Orphans)
	t.notes(p.Warnings)
	return t
}

// title begins a section.
func (t *page) title(s string) { t.sections = append(t.sections, section{title: s}) }

// detailsTitle begins a section of details.
func (t *page) detailsTitle(s string) {
	t.sections = append(t.sections, section{title: s, details: true})
}

// row adds a row to the last section.
func (t *page) row(cells ...string) {
	last := &t.sections[len(t.sections)-1]
	last.rows = append(last.rows, cells)
}

// findings writes why the manager refuses the package.
func (t *page) findings(all []install.Finding) {
	if len(all) > 0 {
		t.title("refused")
	}
	for _, f := range all {
		t.row("refuse", f.Code+": "+f.Err().Error())
	}
}

func (t *page) version(word string, v *planner.Version) {
	if v != nil {
		t.versions = append(t.versions, []string{word, v.String()})
	}
}

// fields writes changed fields.
func (t *page) fields(title string, all []planner.SpecChange) {
	if len(all) == 0 {
		return
	}
	t.title(title)
	for _, c := range all {
		t.row(c.Field, c.Was+" → "+c.Is)
	}
}

func (t *page) revisions(all []planner.RevisionChange) {
	if len(all) == 0 {
		return
	}
	t.detailsTitle("revisions")
	for _, r := range all {
		about := string(r.State)
		if r.Number > 0 {
			about += fmt.Sprintf(", number %d", r.Number)
		}
		t.row(string(r.Action), r.Name, about)
	}
}

func (t *page) objects(p plan.Plan) {
	switch {
	case len(p.Refusals) > 0:
		t.title("objects")
		t.refusals(p.Refusals)
	case len(p.Changes) > 0:
		t.detailsTitle("objects")
		t.changes(p.Changes)
	}
}

// leftOut writes the objects that are not installed, with the reasons.
func (t *page) leftOut(all []planner.LeftOut) {
	if len(all) == 0 {
		return
	}
	t.title("left out")
	for _, l := range all {
		t.row(l.String())
	}
}

func (t *page) changes(all []plan.Change) {
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
		for _, m := range c.Migrations {
			about += "; " + m.String()
		}
		t.row(string(c.Action), c.Ref.Kind+" "+c.Ref.Name, about)
		if rest := left(all[i+1:], c.Action); named[c.Action] == t.most && rest > 0 {
			t.row(string(c.Action), more(rest))
		}
	}
}

// kinds writes the changes of the fields of kinds, the most severe class first, and the safe ones of each kind in one
// row. They are details if all of them are safe.
func (t *page) kinds(title string, all []crddiff.ChangedCRD) {
	var rows [][]string
	for _, class := range []crddiff.Class{crddiff.Breaking, crddiff.Care} {
		for _, k := range all {
			for _, c := range k.Changes {
				if c.Class == class {
					rows = append(rows, []string{class.String(), k.Name, strings.TrimPrefix(c.String(), class.String()+": ")})
				}
			}
		}
	}
	for _, k := range all {
		if safe := crddiff.SafeLine(k.Changes); safe != "" {
			rows = append(rows, []string{crddiff.Safe.String(), k.Name, safe})
		}
	}
	if len(rows) == 0 {
		return
	}
	if rows[0][0] == crddiff.Safe.String() {
		t.detailsTitle(title)
	} else {
		t.title(title)
	}
	for i, row := range rows {
		if t.most > 0 && i == t.most {
			t.row(more(len(rows) - i))
			return
		}
		t.row(row...)
	}
}

// judgements writes the effect of changed kinds on custom resources, without what is refused.
func (t *page) judgements(title string, all []plan.Judgement) {
	var notes []string
	for _, j := range all {
		notes = append(notes, j.Notes()...)
	}
	if len(notes) == 0 {
		return
	}
	t.title(title)
	for i, text := range notes {
		if t.most > 0 && i == t.most {
			t.row(more(len(notes) - i))
			return
		}
		t.row(text)
	}
}

func (t *page) refusals(all []plan.Refusal) {
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

func (t *page) resources(p *planner.Plan) {
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

func (t *page) dependencies(all []planner.Dependency) {
	if len(all) == 0 {
		return
	}
	t.title("dependencies")
	for len(all) > 0 {
		d := all[0]
		var needs []dependency.Dependency
		var rest []planner.Dependency
		for _, x := range all {
			if x.Package == d.Package && x.State == d.State && x.Optional == d.Optional && x.Installed == d.Installed {
				needs = append(needs, dependency.Dependency{
					Package: x.Package, Constraint: x.Constraint, Optional: x.Optional, CRD: x.CRD,
				})
			} else {
				rest = append(rest, x)
			}
		}
		t.row(string(d.State), dependency.Needs(needs)[0].String(), stateText(d))
		all = rest
	}
}

// stateText describes the state of a dependency.
func stateText(d planner.Dependency) string {
	switch d.State {
	case graph.Incompatible:
		return "installed is " + d.Installed
	case graph.Absent:
		return fmt.Sprintf("optional; xpkg install %s %s:TAG turns it on", cmp.Or(strings.ToLower(d.Kind), "KIND"), d.Package)
	case graph.Progressing:
		return "requested is " + d.Installed
	case graph.NotProvided:
		return d.Installed + " does not contain the kind"
	}
	return ""
}

func (t *page) brings(all []planner.AddedPackage) {
	all = slices.DeleteFunc(slices.Clone(all), func(b planner.AddedPackage) bool { return b.From != "" })
	if len(all) == 0 {
		return
	}
	t.title("installed with it")
	for _, b := range all {
		t.row(strings.ToLower(b.Kind), b.Reference, "for "+strings.Join(b.RequiredBy, ", "))
	}
}

// signatures writes who has signed the content of the packages, as the ImageConfigs require.
func (t *page) signatures(p *planner.Plan) {
	isTitled := false
	row := func(reference string, all []signature.Verdict) {
		for _, v := range all {
			if !isTitled {
				isTitled = true
				t.title("signed by")
			}
			t.row(reference, v.Signer, fmt.Sprintf("as the ImageConfig %s requires", v.Config))
		}
	}
	if p.Content != nil {
		row(p.Content.Reference, p.Content.Signers)
	}
	for _, a := range p.AddedPackages {
		row(a.Reference, a.Signers)
	}
}

func (t *page) moves(all []planner.AddedPackage) {
	all = slices.DeleteFunc(slices.Clone(all), func(b planner.AddedPackage) bool { return b.From == "" })
	if len(all) == 0 {
		return
	}
	t.title("moved with it")
	for _, b := range all {
		t.row(v1.ObjectName(b.Kind, b.Name), inventory.ShortVersion(b.From)+" → "+
			inventory.ShortVersion(b.Reference), "for "+strings.Join(b.RequiredBy, ", "))
	}
}

// additions writes the objects, the changed kinds and the permissions of dependencies that are installed or moved.
func (t *page) additions(all []planner.AddedPackage) {
	for _, a := range all {
		if len(a.Objects.Changes) > 0 {
			t.detailsTitle("objects of " + a.Short())
			t.changes(a.Objects.Changes)
		}
		t.kinds("changed fields of kinds of "+a.Short(), a.KindChanges)
		t.judgements("custom resources of changed kinds of "+a.Short(), a.Objects.Judgements)
		t.permissionsOf(a.Short(), a.Permissions)
	}
}

func (t *page) breaks(all []planner.Broken) {
	if len(all) == 0 {
		return
	}
	t.title("breaks")
	for _, b := range all {
		t.row(v1.ObjectName(b.Kind, b.Name), b.Needs(), b.After())
	}
}

func (t *page) orphans(all []planner.Orphan) {
	if len(all) == 0 {
		return
	}
	t.title("no longer needed")
	for _, o := range all {
		about := "xpkg autoremove removes it"
		if o.Removed {
			about = "the manager removes it"
		}
		t.row(v1.ObjectName(o.Kind, o.Name), o.Reference, about)
	}
}

func (t *page) notes(all []string) {
	if len(all) == 0 {
		return
	}
	most := -1
	if t.most > 0 {
		most = view.MostNamed
	}
	t.title("notes")
	for _, n := range view.Merge(all, most) {
		t.row("- " + n)
	}
}
