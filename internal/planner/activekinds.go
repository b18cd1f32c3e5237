package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ActiveKinds are the managed resources of a Provider after the operation.
type ActiveKinds struct {
	// Active is the number of active ones among those that are Offered.
	Active  int `json:"active"`
	Offered int `json:"offered"`
	// MayNeed are the CRDs of the inactive kinds to which fields of active ones refer, ordered.
	MayNeed []string `json:"mayNeed,omitempty"`
	// Choices are the annotations that choose kinds and that the operation changes, with their new values.
	Choices map[string]string `json:"choices,omitempty"`
}

// String describes the numbers.
func (k *ActiveKinds) String() string {
	if k == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d active", k.Active, k.Offered)
	if n := len(k.MayNeed); n > 0 {
		text += fmt.Sprintf(", %d more may be needed", n)
	}
	return text
}

// choices returns the annotations that choose kinds and that an update of a package changes.
func choices(live, p v1.Package) map[string]string {
	var out map[string]string
	for _, key := range activation.Annotations() {
		if value := p.GetAnnotations()[key]; live != nil && live.GetAnnotations()[key] != value {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// wishOf returns the annotations that choose the kinds of a package; empty if it is no Provider.
func wishOf(p v1.Package) string {
	if p.PackageKind() != v1.ProviderKind {
		return ""
	}
	return activation.Wish(p.GetAnnotations())
}

// The cost of a kind for an API server: a mean of what was measured with kinds of large providers.
const (
	processorTimePerKind = 180 * time.Millisecond
	megabytesPerKind     = 4.5
)

// manyKinds is the number of inactive kinds from which their cost matters.
const manyKinds = 100

// setKinds records the kinds of a Provider, and adds notes about them. Before are its revisions in the cluster.
func (p *Plan) setKinds(
	live, after v1.Package, pkg *xpkg.Package, kinds *activation.Selection, before []v1.PackageRevision,
) error {
	if kinds == nil {
		return nil
	}
	active, offered := kinds.Managed()
	changed := choices(live, after)
	if active < offered || len(changed) > 0 {
		referenced, err := kinds.MayNeed()
		if err != nil {
			return err
		}
		p.Kinds = &ActiveKinds{
			Active: active, Offered: offered, Choices: changed, MayNeed: slices.Sorted(maps.Keys(referenced)),
		}
	}
	if missed := kinds.MissedKinds(); len(missed) > 0 {
		p.warn(fmt.Sprintf("Compositions use kinds that are not activated: %s. `xpkg activate` activates them.",
			wording.Few(missed, maxConcerns, "; ")))
	}
	p.warnUnknown(after, kinds)
	isSafe := pkg.Meta.HasCapability(xpkg.CapabilitySafeStart)
	switch choice := after.GetAnnotations()[activation.AnnotationKinds]; {
	case !isSafe && slices.ContainsFunc(before, wasSafe):
		p.warn(fmt.Sprintf("The new version does not have the capability %s, which the former one has: all %s are activated. "+
			"If its runtime did not change, its build tools lost it; report it to the maintainer of the package.",
			xpkg.CapabilitySafeStart, wording.Count(offered, "kind")))
	case !isSafe && choice != "" && choice != activation.All:
		p.warn("All kinds are active, because the package does not have the capability " + xpkg.CapabilitySafeStart +
			": its runtime may need each of them.")
	case isSafe && active == offered && active >= manyKinds && p.Operation == Install:
		p.warn(fmt.Sprintf("All %s are activated, which costs the API server about %s. With --kinds used, only those are that "+
			"Compositions, policies and users need.", wording.Count(active, "kind"), costOf(active)))
	case active < offered:
		text := "1 kind is not activated, because nothing needs it."
		if n := offered - active; n > 1 {
			text = fmt.Sprintf("%d kinds are not activated, because nothing needs them; they would cost the API server about %s.",
				n, costOf(n))
		}
		p.usual = append(p.usual, text)
	}
	return nil
}

// warnUnknown warns about the names and patterns of a choice that match no kind of the package.
func (p *Plan) warnUnknown(after v1.Package, kinds *activation.Selection) {
	choice, err := activation.ParseChoice(after.GetAnnotations()[activation.AnnotationKinds])
	if err != nil || len(choice.Patterns) == 0 {
		return // The selection reports malformed patterns.
	}
	names := make([]string, len(kinds.Offered))
	for i, k := range kinds.Offered {
		names[i] = k.Name
	}
	var unknown []string
	for _, pattern := range activation.Unmatched(choice.Patterns, names) {
		text := fmt.Sprintf("%.100q", pattern)
		if alike := spelling.Alike(pattern, names); len(alike) > 0 {
			text += " (did you mean " + wording.Few(alike, maxAlike, " or ") + "?)"
		}
		unknown = append(unknown, text)
	}
	if len(unknown) > 0 {
		p.warn(fmt.Sprintf("The package offers none of these kinds, so they activate nothing: %s. Kinds are named as their CRDs.",
			wording.Few(unknown, maxConcerns, ", ")))
	}
}

// maxAlike limits the suggestions for a name.
const maxAlike = 3

// wasSafe reports whether a revision is active and its content has the capability safe-start.
func wasSafe(rev v1.PackageRevision) bool { return revision.IsActive(rev) && revision.IsSafeStart(rev) }

// costOf describes what kinds cost an API server.
func costOf(kinds int) string {
	cpu := (time.Duration(kinds) * processorTimePerKind).Round(time.Second)
	memory := float64(kinds) * megabytesPerKind
	if memory < 1000 {
		return fmt.Sprintf("%s of processor time and %.0f MB of memory", cpu, memory)
	}
	return fmt.Sprintf("%s of processor time and %.1f GB of memory", cpu, memory/1000)
}

// Choice returns which kinds of a Provider are wanted.
func (pl *Planner) Choice(ctx context.Context, p v1.Package) (activation.Choice, error) {
	return pl.start(Options{}).packages().Kinds.ChoiceOf(ctx, p)
}

// KindsOf returns the kinds that an installed Provider offers, and which of them would be active with its current
// annotations. It returns nil for a package without an active revision, and for other packages. It fails with
// InvalidKinds for malformed annotations.
func (pl *Planner) KindsOf(ctx context.Context, p v1.Package) (*activation.Selection, error) {
	packages := pl.start(Options{}).packages()
	pkg, rev, err := pl.activeContent(ctx, packages, p)
	if pkg == nil || err != nil {
		return nil, err
	}
	return packages.Kinds.Select(ctx, p, pkg, rev)
}

// OfferedKinds returns the kinds that an installed Provider offers, whatever its annotations choose. It returns none
// for a package without an active revision, and for other packages.
func (pl *Planner) OfferedKinds(ctx context.Context, p v1.Package) ([]activation.Kind, error) {
	pkg, _, err := pl.activeContent(ctx, pl.start(Options{}).packages(), p)
	if pkg == nil || err != nil {
		return nil, err
	}
	return activation.OfferedBy(pkg)
}

// activeContent returns the active revision of a Provider and its content, or nil if there is none.
func (pl *Planner) activeContent(
	ctx context.Context, packages state.Packages, p v1.Package,
) (*xpkg.Package, v1.PackageRevision, error) {
	if p.PackageKind() != v1.ProviderKind {
		return nil, nil, nil
	}
	revisions, err := pl.start(Options{}).listRevisions(ctx, p.PackageKind(), p.GetName())
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(revisions, revision.IsActive)
	if i < 0 {
		return nil, nil, nil
	}
	pkg, _, err := packages.ReadRevision(ctx, revisions[i])
	return pkg, revisions[i], err
}

// InUse returns a function that returns which of some CRDs have custom resources, or may have some.
func InUse(counter interface {
	CustomResources(ctx context.Context, crds []string, identify bool) ([]CustomResources, error)
}) func(context.Context, []string) (map[string]bool, error) {
	return func(ctx context.Context, crds []string) (map[string]bool, error) {
		counts, err := counter.CustomResources(ctx, crds, false)
		out := map[string]bool{}
		for _, c := range counts {
			out[c.CRD] = true
		}
		return out, err
	}
}
