package planner

import (
	"context"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// Choice returns which kinds of a Provider are wanted.
func (pl *Planner) Choice(p v1.Package) (activation.Choice, error) {
	return pl.start(Options{}).packages().Kinds.ChoiceOf(p)
}

// KindsOf returns the kinds that an installed Provider offers, and which of them would be active with its current
// annotations. It returns nil for a package without an active revision, and for other packages.
func (pl *Planner) KindsOf(ctx context.Context, p v1.Package) (*activation.Selection, error) {
	if p.PackageKind() != v1.ProviderKind {
		return nil, nil
	}
	revisions, err := pl.start(Options{}).listRevisions(ctx, p.PackageKind(), p.GetName())
	if err != nil {
		return nil, err
	}
	packages := pl.start(Options{}).packages()
	for _, rev := range revisions {
		if !revision.IsActive(rev) {
			continue
		}
		pkg, _, err := packages.ReadRevision(ctx, rev)
		if err != nil {
			return nil, err
		}
		return packages.Kinds.Select(ctx, p, pkg, rev.RevisionStatus().ObjectRefs...)
	}
	return nil, nil
}
