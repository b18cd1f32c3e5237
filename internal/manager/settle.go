package manager

import (
	"cmp"
	"context"
	"log/slog"
	"maps"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/resolve"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// Dependencies say what is done about what packages need.
type Dependencies struct {
	// Registry is where versions are looked up.
	Registry resolve.Registry
	// Upgrades says what may become of packages that were installed because others
	// need them. Empty means [closure.None].
	Upgrades closure.Policy
	// Removal says what becomes of such packages when nobody needs them any more.
	// Empty means [closure.KeepOrphans].
	Removal closure.Removal
}

// settling is what it takes to give packages what they need.
type settling struct {
	Dependencies
	// turns lets one at a time deal with packages that have to do with each other.
	turns turns
}

func newSettling(d *Dependencies) *settling {
	if d == nil {
		return nil
	}
	return &settling{Dependencies: *d}
}

// announce writes into the Lock what is done about what packages need, and about what
// nobody needs, for whoever plans an operation, and reports whether that is news. It says
// nothing where nothing is done.
func (s *settling) announce(lock *v1beta1.Lock) (news bool) {
	says := map[string]string{}
	if s != nil {
		says[closure.AnnotationUpgrades] = string(s.upgrades())
	}
	if s != nil && s.Removal == closure.RemoveOrphans {
		says[closure.AnnotationRemoval] = string(s.Removal)
	}
	annotations := maps.Clone(lock.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == closure.AnnotationUpgrades || key == closure.AnnotationRemoval
	})
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, says)
	news = !maps.Equal(annotations, lock.Annotations)
	lock.Annotations = annotations
	return news
}

func (s *settling) upgrades() closure.Policy { return cmp.Or(s.Upgrades, closure.None) }

// policy is what may become of others for the sake of a revision. One that is about to
// be replaced moves nobody. One that was brought back may take back what was moved for
// the revision that did not become healthy.
func (s *settling) policy(p v1.Package, rev v1.PackageRevision) closure.Policy {
	back := revision.PolicyOf(p).Back == rev.GetName()
	switch {
	case s.upgrades() == closure.Upgrade && back:
		return closure.UpgradeOrDowngrade
	case !back && p.PackageSpec().Package != rev.RevisionSpec().Image:
		return closure.None
	}
	return s.upgrades()
}

// wanting is a revision that does not have what it needs.
type wanting struct {
	family
	meta format.Meta
	// missing says that something is not there at all.
	missing bool
}

// settle gives packages what they need, one at a time of those that have to do with each
// other, where that is wanted. It gives what was moved, in words. Seen is the graph in
// which something was missing, or did not fit.
func (r *revisionReconciler) settle(ctx context.Context, log *slog.Logger, w wanting, seen *closure.Graph) (moved []string, err error) {
	s := r.settling
	if s == nil || !w.missing && s.upgrades() == closure.None {
		return nil, nil
	}
	own, err := component(seen, w.pkg)
	if err != nil {
		return nil, err
	}
	first := own.Nodes()[0]
	leave, err := s.turns.take(ctx, packageKey{first.Kind, first.Name})
	if err != nil {
		return nil, err
	}
	defer leave()
	parent := v1.NewPackage(r.kind)
	if err := r.stillThere(ctx, w.pkg, parent); err != nil {
		return nil, err
	}
	policy := s.policy(parent, w.rev)
	if !w.missing && policy == closure.None {
		return nil, nil
	}
	return r.step(ctx, log, w, parent, policy)
}

// step finds one solution for all packages that have to do with one of them, and
// installs and moves what it takes: all at once, and only when all of it can be had. A
// conflict is told to those whose needs are not met, and is nobody else's matter.
func (r *revisionReconciler) step(ctx context.Context, log *slog.Logger, w wanting, parent v1.Package, policy closure.Policy) (moved []string, err error) {
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
		return nil, errStale
	}
	return r.make(ctx, log, parent, changes)
}

// component is the graph of the packages that have to do with one of them.
func component(graph *closure.Graph, p v1.Package) (*closure.Graph, error) {
	own := graph.Component(p.PackageKind(), p.GetName())
	if len(own.Nodes()) == 0 {
		// It was deleted, or renamed, meanwhile.
		return nil, errStale
	}
	return own, nil
}
