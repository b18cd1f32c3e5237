package inventory

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
)

// ReadRevisions returns the revisions of a package, newest first.
func ReadRevisions(ctx context.Context, cluster client.Client, p v1.Package) ([]v1.PackageRevision, error) {
	list := p.NewRevisionList()
	if err := cluster.List(ctx, list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		return nil, apiserver.Classify(err, "list the revisions of %s", ShortName(p))
	}
	out := list.Revisions()
	slices.SortFunc(out, func(a, b v1.PackageRevision) int {
		return cmp.Compare(b.RevisionSpec().Revision, a.RevisionSpec().Revision)
	})
	return out, nil
}
