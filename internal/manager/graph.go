package manager

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// graph is all packages of the cluster with what they need, as far as that is known.
// The package of a revision is there as that revision.
func (r *revisionReconciler) graph(ctx context.Context, f family, meta format.Meta) (*closure.Graph, error) {
	// A revision that another package manager has made does not say its digest.
	content, _ := oci.ParseDigest(f.rev.RevisionSpec().Digest)
	var nodes []closure.Node
	if n, ok := closure.At(f.pkg, f.rev.RevisionSpec().Image, content, meta.Dependencies()); ok {
		nodes = append(nodes, n)
	}
	for _, kind := range v1.PackageKinds() {
		others, err := r.nodes(ctx, kind, keyOf(f.pkg))
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, others...)
	}
	return closure.NewGraph(nodes, r.places(ctx)), nil
}

// listed reads the packages of a kind, and all revisions by the names of their packages.
// Nothing of them may be changed: they may be what is in the cache.
func listed(ctx context.Context, reader client.Reader, kind string) ([]v1.Package, map[string][]v1.PackageRevision, error) {
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

// nodes are the packages of a kind but for one.
func (w *world) nodes(ctx context.Context, kind string, except packageKey) ([]closure.Node, error) {
	packages, revisions, err := listed(ctx, w.client, kind)
	if err != nil {
		return nil, err
	}
	var nodes []closure.Node
	for _, p := range packages {
		if keyOf(p) == except {
			continue
		}
		if n, ok := w.node(ctx, p, revisions[p.GetName()]); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// node is a package with these revisions: as it asks to be, or as it was brought back.
func (w *world) node(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (closure.Node, bool) {
	image, content := p.PackageSpec().Package, closure.Content(p)
	if back := closure.BroughtBack(p, revisions); back != nil {
		image = back.RevisionSpec().Image
		content, _ = oci.ParseDigest(back.RevisionSpec().Digest)
	}
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil {
		return closure.Node{}, false
	}
	n, ok := closure.At(p, image, content, w.needs.of(ctx, ref, content.String()))
	n.Running = closure.Running(p, revisions)
	return n, ok
}

// places tell where repositories are really read, after what image configs say.
func (w *world) places(ctx context.Context) func(repository string) string {
	places, err := w.origins.Places(ctx)
	if err != nil {
		return func(repository string) string { return repository }
	}
	return places
}
