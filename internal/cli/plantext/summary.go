package plantext

import (
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// summary returns the totals of a plan in one line.
func summary(p *planner.Plan) string {
	unchanged := wording.Count(p.Objects.Unchanged, "object") + " unchanged"
	if !p.HasChanges() {
		return "Nothing to do: " + unchanged + "."
	}
	if len(p.Findings) > 0 {
		return refused(p.Findings[0].Stage) + "; nothing will be changed."
	}
	if n := len(p.Objects.Refusals); n > 0 {
		return wording.Count(n, "object") + " refused; nothing will be changed."
	}
	parts := sums(p.Objects.Changes)
	if len(parts) == 0 {
		parts = []string{"no object of the package changes"}
		if name := restarted(p); name != "" && p.WithoutRuntime {
			parts = []string{"revision " + name + " becomes active, and no object of the package changes"}
		} else if name != "" {
			parts = []string{"the runtime is replaced by the runtime of revision " + name +
				", and no object of the package changes"}
		}
	}
	text := strings.Join(parts, ", ") + "; " + unchanged + "."
	var added []plan.Change
	for _, a := range p.AddedPackages {
		added = append(added, a.Objects.Changes...)
	}
	if len(added) > 0 {
		text += " Objects of dependencies: " + strings.Join(sums(added), ", ") + "."
	}
	if kinds := p.AllKindChanges(); len(kinds) > 0 {
		text += " " + changedKinds(len(kinds), p.CountKindChanges()) + "."
	}
	if resources, uncounted := p.CountCustomResources(); resources > 0 || uncounted > 0 {
		text += " " + Lost(resources, uncounted)
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// refused returns the result of a failed check in a clause.
func refused(s install.Stage) string {
	switch s {
	case install.Crossplane:
		return "The package is incompatible"
	case install.Policy:
		return "The policy denies requested permissions"
	case install.Runtime:
		return "The runtime is refused"
	case install.Webhooks:
		return "Webhooks for resources of others are not allowed"
	}
	return "The package is refused"
}

// total returns the totals of several plans in one line.
func total(plans []*planner.Plan) string {
	operations, classes := map[planner.Operation]int{}, map[crddiff.Class]int{}
	var changes []plan.Change
	var resources int64
	kinds, uncounted := 0, 0
	for _, p := range plans {
		operations[p.Operation]++
		changes = append(changes, p.Objects.Changes...)
		for _, a := range p.AddedPackages {
			changes = append(changes, a.Objects.Changes...)
		}
		kinds += len(p.AllKindChanges())
		for class, n := range p.CountKindChanges() {
			classes[class] += n
		}
		if p.HasChanges() {
			counted, unknown := p.CountCustomResources()
			resources, uncounted = resources+counted, uncounted+unknown
		}
	}
	var parts []string
	for _, o := range []planner.Operation{planner.Install, planner.Update, planner.Uninstall} {
		if n := operations[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, o))
		}
	}
	text := fmt.Sprintf("In total %s: %s.", wording.Count(len(plans), "package"), strings.Join(parts, ", "))
	if all := sums(changes); len(all) > 0 {
		text += " Objects: " + strings.Join(all, ", ") + "."
	}
	if kinds > 0 {
		text += " " + changedKinds(kinds, classes) + "."
	}
	if resources > 0 || uncounted > 0 {
		text += " " + Lost(resources, uncounted)
	}
	return text
}

// changedKinds returns the number of kinds whose fields change, and of their changes in each class.
func changedKinds(kinds int, counts map[crddiff.Class]int) string {
	var parts []string
	for _, class := range []crddiff.Class{crddiff.Breaking, crddiff.Care, crddiff.Safe} {
		if n := counts[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, class))
		}
	}
	return "Changes of " + wording.Count(kinds, "kind") + ": " + strings.Join(parts, ", ")
}

// restarted returns the revision whose activation replaces the runtime of the package, or
// "".
func restarted(p *planner.Plan) string {
	if p.Operation != planner.Update || p.Package.Kind == v1.ConfigurationKind {
		return ""
	}
	for _, r := range p.Revisions {
		if r.State == v1.RevisionActive && (r.Action == planner.CreateRevision || r.Action == planner.ActivateRevision) {
			return r.Name
		}
	}
	return ""
}

// actions returns all actions in display order.
func actions() []plan.Action {
	return []plan.Action{
		plan.Create, plan.Update, plan.Adopt, plan.TakeOver, plan.Correct, plan.Own, plan.Release, plan.Delete, plan.Leave,
	}
}

// sums returns the number of changes for each action.
func sums(changes []plan.Change) []string {
	counts, rewritten := map[plan.Action]int{}, map[plan.Action]int{}
	for _, c := range changes {
		counts[c.Action]++
		if rewrites(c) {
			rewritten[c.Action]++
		}
	}
	var parts []string
	for _, a := range actions() {
		if counts[a] == 0 {
			continue
		}
		part := fmt.Sprintf("%d to %s", counts[a], a)
		if rewritten[a] > 0 {
			part += fmt.Sprintf(" (%d with %s)", rewritten[a], newContent)
		}
		parts = append(parts, part)
	}
	return parts
}

// Lost describes the number of custom resources that are deleted.
func Lost(resources int64, uncounted int) string {
	text := wording.Count(int(resources), "custom resource") + " will be deleted"
	if uncounted > 0 {
		text += fmt.Sprintf(", and custom resources of %s that cannot be counted", wording.Count(uncounted, "definition"))
	}
	return text + "."
}

// newContent marks objects whose content changes, not only their owners.
const newContent = "new content"

// rewrites reports whether a change writes new content to an existing object.
func rewrites(c plan.Change) bool {
	switch c.Action {
	case plan.Update, plan.Adopt, plan.TakeOver, plan.Correct:
		return !c.MetadataOnly
	}
	return false
}
