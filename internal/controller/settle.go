package controller

import (
	"cmp"
	"context"
	"log/slog"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Dependencies say what is done about what packages need.
type Dependencies struct {
	// Registry is where versions are looked up.
	Registry fetch.Lookup
	// Upgrades says what may become of packages that were installed because others
	// need them. Empty means [graph.None].
	Upgrades graph.Policy
	// Removal says what becomes of such packages when nobody needs them any more.
	// Empty means [graph.KeepOrphans].
	Removal graph.RemovalPolicy
}

// settling is what it takes to give packages what they need.
type settling struct {
	Dependencies
	// locks lets one reconciliation at a time change packages that depend on each other.
	locks keyedmutex.Mutex[reservations.Key]
}

func newSettling(d *Dependencies) *settling {
	if d == nil {
		return nil
	}
	return &settling{Dependencies: *d}
}

func (s *settling) upgrades() graph.Policy { return cmp.Or(s.Upgrades, graph.None) }

// wanting is a revision that does not have what it needs.
type wanting struct {
	family
	meta xpkg.Meta
	// missing says that something is not there at all.
	missing bool
}

// settle gives packages what they need, one at a time of those that have to do with each
// other, where that is wanted. It gives what was moved, in words. Seen is the graph in
// which something was missing, or did not fit.
func (r *revisionReconciler) settle(ctx context.Context, log *slog.Logger, w wanting, seen *graph.Graph) (moved []string, err error) {
	s := r.settling
	if s == nil || !w.missing && s.upgrades() == graph.None {
		return nil, nil
	}
	own, err := component(seen, w.pkg)
	if err != nil {
		return nil, err
	}
	first := own.Nodes()[0]
	leave, err := s.locks.Lock(ctx, reservations.Key{Kind: first.Kind, Name: first.Name})
	if err != nil {
		return nil, err
	}
	defer leave()
	parent := v1.NewPackage(r.kind)
	if err := r.stillThere(ctx, w.pkg, parent); err != nil {
		return nil, err
	}
	policy := graph.PolicyFor(s.upgrades(), parent, w.rev)
	if !w.missing && policy == graph.None {
		return nil, nil
	}
	return r.step(ctx, log, w, parent, policy)
}

// step finds one solution for all packages that have to do with one of them, and
// installs and moves what it takes: all at once, and only when all of it can be had. A
// conflict is told to those whose needs are not met, and is nobody else's matter.
func (r *revisionReconciler) step(ctx context.Context, log *slog.Logger, w wanting, parent v1.Package, policy graph.Policy) (moved []string, err error) {
	// Whoever had the turn before may have done it all.
	seen, err := r.graph(ctx, w.family, w.meta)
	if err != nil {
		return nil, err
	}
	if _, err := component(seen, w.pkg); err != nil {
		return nil, err
	}
	own, result, err := seen.Resolve(ctx, seen.Resolver(r.settling.Registry, r.origins, parent), r.kind, w.pkg.GetName(), policy)
	if err != nil {
		return nil, err
	}
	for _, note := range result.Notes {
		log.InfoContext(ctx, "dependencies", "note", note)
	}
	changes := own.Changes(result)
	if len(changes) == 0 {
		return nil, nil
	}
	if err := r.foresee(ctx, w.family, seen, changes); err != nil {
		return nil, err
	}
	// Nothing is done for a package that was deleted meanwhile, or asks for something else.
	now := v1.NewPackage(r.kind)
	if err := r.stillThere(ctx, w.pkg, now); err != nil {
		return nil, err
	}
	if now.GetGeneration() != parent.GetGeneration() {
		return nil, requeue.ErrStale
	}
	return r.make(ctx, log, parent, changes)
}

// component is the graph of the packages that have to do with one of them.
func component(g *graph.Graph, p v1.Package) (*graph.Graph, error) {
	own := g.Component(p.PackageKind(), p.GetName())
	if len(own.Nodes()) == 0 {
		// It was deleted, or renamed, meanwhile.
		return nil, requeue.ErrStale
	}
	return own, nil
}
