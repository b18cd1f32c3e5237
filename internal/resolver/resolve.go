// Package resolver finds one version for everything that some packages need, by what
// registries have.
//
// Solving is left to pkg/solver, which asks one question at a time. What makes
// it quick is here: while nothing is known that speaks against it, the highest
// version that fits each dependency is the one that will be chosen, so all of these
// are read ahead, each as soon as somebody is found to need it. What counts is then
// how deep a tree is, and not how large.
//
// Who installs nothing needs no objects: of each version only its metadata is read,
// see [content.Source.Describe].
package resolver

import (
	"context"
	"errors"
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Registry is where packages are looked up; a content.Source is one.
type Registry interface {
	// Tags lists the tags of a repository, as one place of the origin has them.
	Tags(ctx context.Context, o fetch.Origin) (fetch.TagList, error)
	// Describe tells what a package says about itself: the content with the digest,
	// or, when that is zero, with the digest or the tag of the origin.
	Describe(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error)
	// Prove is Describe, by package.yaml alone.
	Prove(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error)
}

// Resolver resolves. It can be used by many goroutines.
type Resolver struct {
	Registry Registry
	// Locate tells where the content of a reference is; it is at the reference itself
	// when nil.
	Locate func(ctx context.Context, ref oci.Reference) (fetch.Origin, error)
	// Name gives the one name that a repository has among those that are kept; it is
	// its own when nil.
	Canonical func(repository string) string
	// DefaultRegistry is where dependencies are that name no registry. Without it
	// there are none such: which registry was meant is not guessed.
	DefaultRegistry string
	// PerHost bounds the requests to one host that are under way at the same time; 50
	// when it is zero.
	PerHost int
	// Budget is that of [solve.Problem].
	Budget int

	hosts hostLimiter
}

// Request is what is to be resolved.
type Request struct {
	Roots []lockfile.Root
	// Kept are versions that stay as long as they fit: those of a lock file, or what
	// is installed. What they need is believed, so that they cost no request.
	Locked []lockfile.Package
	// Moves and Nearest are those of [solve.Problem]: how what is kept may change where
	// not all of it can stay.
	Moves   solver.Moves
	Nearest bool
}

// Result is what was found.
type Result struct {
	lockfile.File
	// Why says of each repository who asked for it, and with which constraint.
	Why map[string][]string
	// SetAside says of each repository which tags that could have been expected were
	// not chosen, and why.
	SetAside map[string][]solver.SetAside
	// ListedBy names, for repositories whose tags another place has listed, a mirror or
	// one to which images are rewritten, the repository there.
	ListedBy map[string]string
	// Notes are what a person should know: a version that cannot be used, a package
	// under two names, a mirror that is behind. They are there for a failure, too, and in
	// a fixed order.
	Notes []string
}

// Resolve finds a version for everything that the roots need. It fails as
// [solve.Solve] does; with the failure of a root that names one version which
// cannot be had; and with IndexMismatch for a package that has lied about itself.
//
// First all of what is kept stays, and only where there is no such solution
// anything of it moves. Tags are those that the first place of a repository lists, and
// where these have no solution, those of the next.
func (r *Resolver) Resolve(ctx context.Context, q Request) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newSource(ctx, r, q.Locked)
	defer s.wait()
	if len(q.Locked) > 0 {
		if solution, err := s.solve(q, true); err == nil {
			return s.result(q, solution)
		} else if !unsolvable(err) {
			return Result{Notes: s.sortedNotes()}, err
		}
	}
	s.prefetch(q.Roots, false)
	if err := s.checkNamedRoots(q.Roots); err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	solution, err := s.solve(q, false)
	for unsolvable(err) && s.tryNextMirrors() {
		solution, err = s.solve(q, false)
	}
	if unsolvable(err) && s.mirrorErr != nil {
		err = fmt.Errorf("%w (whether a mirror hides a solution is not known: %v)", err, s.mirrorErr)
	}
	if err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	return s.result(q, solution)
}

func unsolvable(err error) bool {
	return errors.Is(err, solver.ErrUnsolvable) || errors.Is(err, solver.ErrCycle)
}

// solve solves with what is kept: held says that nothing else is to be considered of
// these packages.
func (s *source) solve(q Request, held bool) (solver.Solution, error) {
	p := solver.Problem{
		Source: s, Installed: map[string]string{}, Moves: q.Moves, Nearest: q.Nearest,
		Roots: q.Roots, Budget: s.resolver.Budget, SkipExplanation: held,
	}
	for _, kept := range q.Locked {
		p.Installed[kept.Repository] = kept.Pin()
	}
	s.prefetch(q.Roots, held)
	return solver.Solve(p)
}

// named fails with what is wrong with a root that names one version, which says
// more than that there is no solution.
func (s *source) checkNamedRoots(roots []lockfile.Root) error {
	for _, root := range roots {
		if root.Optional {
			continue
		}
		pin := root.Constraint
		if !root.Exact {
			pin = version.ParseConstraint(root.Constraint).Pinned()
		}
		if pin == "" {
			if _, err := s.list(root.Package).wait(); isNotFound(err) {
				return err
			}
			continue
		}
		if t, ok := s.lookup(root.Package, pin); ok && t.cause != nil {
			return t.cause
		}
	}
	return nil
}
