package controller

import (
	"context"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// graph is all packages of the cluster with what they need, as far as that is known.
// The package of a revision is there as that revision.
func (r *revisionReconciler) graph(ctx context.Context, f family, meta xpkg.Meta) (*graph.Graph, error) {
	// A revision that another package manager has made does not say its digest.
	content, _ := oci.ParseDigest(f.rev.RevisionSpec().Digest)
	var nodes []graph.Node
	if n, ok := graph.NodeFromImage(f.pkg, f.rev.RevisionSpec().Image, content, meta.Dependencies()); ok {
		nodes = append(nodes, n)
	}
	for _, kind := range v1.PackageKinds() {
		others, err := r.nodes(ctx, kind, reservations.KeyOf(f.pkg))
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, others...)
	}
	return graph.New(nodes, r.places(ctx)), nil
}

// nodes are the packages of a kind but for one.
func (w *world) nodes(ctx context.Context, kind string, except reservations.Key) ([]graph.Node, error) {
	packages, revisions, err := state.ListPackages(ctx, w.client, kind)
	if err != nil {
		return nil, err
	}
	var nodes []graph.Node
	for _, p := range packages {
		if reservations.KeyOf(p) == except {
			continue
		}
		if n, ok := w.node(ctx, p, revisions[p.GetName()]); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// node returns the node of a package with these revisions.
func (w *world) node(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (graph.Node, bool) {
	return graph.NodeFromRevisions(p, revisions, func(image string, content oci.Digest) []xpkg.Dependency {
		return w.needs.Of(ctx, image, content.String())
	})
}

// places returns a function from repositories to the repositories that they are read from.
func (w *world) places(ctx context.Context) func(repository string) string {
	return state.Places(ctx, w.origins)
}
