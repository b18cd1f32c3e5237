package state

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ListPackages lists the packages of a kind, and all revisions of the kind by the names of their
// packages. The caller must not change them: they may be the objects in the cache.
func ListPackages(
	ctx context.Context, reader client.Reader, kind string,
) ([]v1.Package, map[string][]v1.PackageRevision, error) {
	packages, all := v1.NewPackageList(kind), v1.NewPackage(kind).NewRevisionList()
	if err := reader.List(ctx, packages, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list packages: %w", err)
	}
	if err := reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list revisions: %w", err)
	}
	revisions := map[string][]v1.PackageRevision{}
	for _, rev := range all.Revisions() {
		name := rev.GetLabels()[v1.LabelPackage]
		revisions[name] = append(revisions[name], rev)
	}
	return packages.Packages(), revisions, nil
}

// ListRevisions lists the revisions of all kinds. The caller must not change them.
func ListRevisions(ctx context.Context, reader client.Reader) ([]v1.PackageRevision, error) {
	var out []v1.PackageRevision
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackage(kind).NewRevisionList()
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list revisions: %w", err)
		}
		out = append(out, list.Revisions()...)
	}
	return out, nil
}

// RevisionsOf lists the revisions of a package.
func RevisionsOf(ctx context.Context, reader client.Reader, p v1.Package) ([]v1.PackageRevision, error) {
	list := p.NewRevisionList()
	if err := reader.List(ctx, list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return list.Revisions(), nil
}

// Rewrites returns a function that maps a repository to the location from which it is read. If the
// ImageConfigs cannot be read, this is the location of the repository itself.
func Rewrites(ctx context.Context, origins Origins) func(repository string) string {
	rewrites, err := origins.Rewrites(ctx)
	if err != nil {
		return oci.RepositoryLocation
	}
	return rewrites
}
