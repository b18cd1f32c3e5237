package operation

import (
	"context"
	"maps"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/generation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

// GenerationSteps returns the steps that return the installed packages to those of a generation, with their contents
// and settings. Packages that the generation does not contain are uninstalled. A new reference has the digest of the
// generation.
func (e *Engine) GenerationSteps(
	ctx context.Context, all *inventory.Inventory, g generation.Generation,
) ([]*Step, error) {
	var out []*Step
	surplus := slices.DeleteFunc(slices.Clone(all.Packages), inventory.IsDeleting)
	for _, p := range g.Packages {
		s := generationStep(all.Named(emptyPackage(p.PackageName)), p)
		if s.Live != nil {
			if err := inventory.CheckNotDeleting(s.Live); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
		surplus = slices.DeleteFunc(surplus, func(live v1.Package) bool { return live == s.Live })
	}
	removals, err := e.RemovalSteps(ctx, all, surplus)
	return append(out, removals...), err
}

// generationStep returns the step that returns an installed package, or nil, to that of a generation. A package that a
// user has installed explicitly since stays explicit, and consents that were given since stay.
func generationStep(live v1.Package, p generation.Package) *Step {
	s := &Step{Live: live, Want: emptyPackage(p.PackageName), RollsBack: true}
	annotations := maps.Clone(p.Annotations)
	isDependency := p.Labels[graph.LabelAutoInstalled] != ""
	if live != nil {
		s.Want = live.DeepCopyObject().(v1.Package)
		delete(annotations, graph.AnnotationRequiredBy)
	} else if annotations[graph.AnnotationRequiredBy] == "" {
		s.Want.SetLabels(p.Labels) // Otherwise it is labelled when the packages that require it exist.
	}
	setSpec(s.Want, &v1.Provider{Spec: p.Spec})
	s.Want.SetAnnotations(desired.Overlay(s.Want.GetAnnotations(), annotations))
	if !isDependency {
		graph.Adopt(s.Want)
	}
	s.markDependency = graph.IsUnmarkedDependency(s.Want)
	s.Want.PackageSpec().Package = contentOf(live, p)
	s.Same = isWanted(live, s.Want)
	return s
}

// contentOf returns the reference of the content of a package of a generation: that of the installed package, if it has
// this content.
func contentOf(live v1.Package, p generation.Package) string {
	if live != nil {
		if is, ok := inventory.InstalledReference(live); ok && !p.Digest.IsZero() && is.String() == p.Reference() {
			return live.PackageSpec().Package
		}
	}
	return p.Reference()
}
