package orphans

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// dependencyGraph holds all packages, with every dependency that they have or may have again.
type dependencyGraph struct {
	nodes []graph.Node
	// unknown names a package whose dependencies are not known. It is empty if there is none.
	unknown string
	// rollbackWindow is the time until the first of the active revisions can no longer be rolled
	// back, or zero.
	rollbackWindow time.Duration
}

// dependencyGraph reads the dependencies of all packages: the dependencies of the active revision
// or, while a package may still be rolled back or forward, of all revisions. Packages that are
// being deleted, and revisions whose package is gone, keep their dependencies, because the deletion
// of their objects may need them. Optional dependencies count as required.
func (r *Reconciler) dependencyGraph(ctx context.Context, reader client.Reader) (dependencyGraph, error) {
	var g dependencyGraph
	for _, kind := range v1.PackageKinds() {
		packages, revisions, err := state.ListPackages(ctx, reader, kind)
		if err != nil {
			return g, err
		}
		for _, p := range packages {
			window := r.RollbackWindow(p, revisions[p.GetName()])
			g.add(r.node(ctx, p, revisions[p.GetName()], window > 0))
			if window > 0 && (g.rollbackWindow == 0 || window < g.rollbackWindow) {
				g.rollbackWindow = window
			}
			delete(revisions, p.GetName())
		}
		for name, orphaned := range revisions {
			g.add(r.orphanedRevisions(ctx, kind, name, orphaned))
		}
	}
	return g, nil
}

func (g *dependencyGraph) add(n graph.Node, known bool) {
	g.nodes = append(g.nodes, n)
	if !known {
		g.unknown = v1.ObjectName(n.Kind, n.Name)
	}
}

// require marks a package as required, so that it is no orphan.
func (g *dependencyGraph) require(n graph.Node) {
	for i := range g.nodes {
		if g.nodes[i].Compare(n) == 0 {
			g.nodes[i].AutoInstalled = false
		}
	}
}

// node returns the node of a package, and whether its dependencies are known.
func (r *Reconciler) node(
	ctx context.Context, p v1.Package, revisions []v1.PackageRevision, mayRollBack bool,
) (graph.Node, bool) {
	required := requiredContents(p, revisions, mayRollBack)
	dependencies, known := r.dependenciesOf(ctx, required)
	n, exists := graph.NodeFromPackage(p, dependencies)
	if !exists {
		n = graph.Node{Kind: p.PackageKind(), Name: p.GetName(), Package: lockfile.Package{
			Repository: oci.RepositoryName(p.PackageSpec().Package), Dependencies: lockfile.Dependencies(dependencies),
		}}
	}
	return n, known && (len(required) > 0 || p.GetDeletionTimestamp() != nil)
}

// orphanedRevisions returns the node of a deleted package whose revisions still exist, and whether
// its dependencies are known.
func (r *Reconciler) orphanedRevisions(
	ctx context.Context, kind, name string, revisions []v1.PackageRevision,
) (graph.Node, bool) {
	dependencies, known := r.dependenciesOf(ctx, contentsOf(revisions))
	return graph.Node{Kind: kind, Name: name, Package: lockfile.Package{
		Dependencies: lockfile.Dependencies(dependencies),
	}}, known
}

// content is a digest with the reference of the requested image.
type content struct{ image, digest string }

func contentsOf(revisions []v1.PackageRevision) []content {
	var out []content
	for _, rev := range revisions {
		out = append(out, content{rev.RevisionSpec().Image, rev.RevisionSpec().Digest})
	}
	return out
}

// requiredContents returns the contents whose dependencies a package has. For a settled revision
// that cannot be rolled back, that is its content. Otherwise the package may move forward to the
// requested version, or back to any of its revisions, so all of these count.
func requiredContents(p v1.Package, revisions []v1.PackageRevision, mayRollBack bool) []content {
	if rev := settledRevision(p, revisions); rev != nil && !mayRollBack {
		return contentsOf([]v1.PackageRevision{rev})
	}
	out := contentsOf(revisions)
	if p.GetDeletionTimestamp() == nil {
		out = append(out, content{p.PackageSpec().Package, graph.CurrentDigest(p).String()})
	}
	return out
}

// settledRevision returns the only active revision of a package if it has the requested content and
// has been healthy since its activation, and nil otherwise.
func settledRevision(p v1.Package, revisions []v1.PackageRevision) v1.PackageRevision {
	var only v1.PackageRevision
	for _, rev := range revisions {
		switch {
		case !revision.IsActive(rev):
		case only != nil:
			return nil
		default:
			only = rev
		}
	}
	status := p.PackageStatus()
	a := status.Activation
	if only == nil || p.GetDeletionTimestamp() != nil || status.ObservedGeneration != p.GetGeneration() ||
		status.Rollback != nil ||
		only.RevisionSpec().Digest != graph.CurrentDigest(p).String() || a == nil || a.Revision != only.GetName() ||
		!a.Healthy {
		return nil
	}
	return only
}

// dependenciesOf returns the dependencies of all contents, as required ones, and whether all of
// them are known.
func (r *Reconciler) dependenciesOf(ctx context.Context, contents []content) (all []dependency.Dependency, known bool) {
	known = true
	for _, c := range contents {
		more, ok := r.Dependencies.Lookup(ctx, c.image, c.digest)
		known = known && ok
		for _, d := range more {
			d.Optional = false
			all = append(all, d)
		}
	}
	return all, known
}
