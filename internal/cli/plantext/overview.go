package plantext

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

const (
	// wholeOnTerminal is the maximum number of plans that a terminal shows with all their parts.
	wholeOnTerminal = 3
	// plainOnTerminal is the maximum number of plans without consequences that an overview lists.
	plainOnTerminal = 30
)

// weight orders consequences from none to the worst.
type weight int

const (
	plain weight = iota
	noted
	needsCare
	losesOrBreaks
)

// consequences returns what a user has to decide about a plan, worst first, and the weight of the worst.
func consequences(p *planner.Plan) (texts []string, worst weight) {
	add := func(w weight, text string) {
		texts, worst = append(texts, text), max(worst, w)
	}
	if resources, uncounted := p.CountCustomResources(); resources > 0 || uncounted > 0 {
		add(losesOrBreaks, "deletes "+strings.TrimSuffix(Lost(resources, uncounted), " will be deleted."))
	}
	if n := len(p.Breaks); n > 0 {
		add(losesOrBreaks, "breaks "+wording.Count(n, "dependent"))
	}
	if n := p.CountBroken(); n > 0 {
		add(losesOrBreaks, "breaks "+wording.Count(n, "custom resource"))
	}
	if n := p.CountKindChanges()[crddiff.Breaking]; n > 0 {
		add(needsCare, wording.Count(n, "breaking change")+" of kinds")
	}
	if r := p.Permissions; r != nil && len(r.NeedsApproval) > 0 {
		add(needsCare, wording.Count(len(r.NeedsApproval), "permission")+" to approve")
	}
	if w := p.Webhooks; w != nil && len(w.Unallowed) > 0 {
		add(needsCare, wording.Count(len(w.Unallowed), "webhook rule")+" to allow")
	}
	if n := len(p.AddedPackages); n > 0 {
		add(noted, "installs or moves "+wording.Count(n, "other package"))
	}
	if n := len(p.Warnings); n > 0 {
		add(noted, wording.Count(n, "note"))
	}
	return texts, worst
}

// writeOverview writes one line for each plan and consequence, worst first, and the totals.
func writeOverview(w io.Writer, plans []*planner.Plan) {
	type line struct {
		weight
		rows [][]string
	}
	var lines []line
	for _, p := range plans {
		texts, worst := consequences(p)
		version := func(v *planner.Version) string {
			if v == nil {
				return ""
			}
			return inventory.ShortVersion(v.Reference)
		}
		from, to := version(p.Package.From), version(p.Package.To)
		versions := cmp.Or(to, from)
		if from != "" && to != "" && from != to {
			versions = from + " → " + to
		}
		rows := [][]string{{p.Verb() + " " + p.Package.Short(), versions, ""}}
		for i, text := range texts {
			if i > 0 {
				rows = append(rows, []string{"", "", ""})
			}
			rows[i][2] = text
		}
		lines = append(lines, line{worst, rows})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.weight, a.weight) })
	out, left := textWriter{w}, 0
	var shown [][]string
	for i, l := range lines {
		if i >= plainOnTerminal && l.weight == plain {
			left = len(lines) - i
			break
		}
		shown = append(shown, l.rows...)
	}
	out.rows(shown)
	if left > 0 {
		out.line(fmt.Sprintf("  and %d more without consequences to decide about", left))
	}
	out.line("")
	out.line(total(plans))
	out.line("To read all changes, repeat the command with --dry-run and `| less`, or with -o json.")
}
