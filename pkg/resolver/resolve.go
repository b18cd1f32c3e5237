// Package resolver selects one version of every package that a set of roots requires, from the
// versions that registries provide.
//
//	Request ──▶ Resolver ──▶ Result: a lock file, and the reason for each version
//	               │  ▲
//	    questions  │  │  versions and dependencies, read ahead
//	               ▼  │
//	           pkg/solver      Registry ◀── the caller
//
// The solver asks one question at a time. The resolver answers from what it has read ahead: as
// long as nothing is known against it, the highest version that satisfies each dependency is
// likely to be selected, so all of these are read as soon as they are found. The time for a
// resolution depends on the depth of the tree, not on its size. The solver gets its answers
// only when no request is in flight, so that the requests and the solution do not depend on
// which registry is the fastest.
//
// Only the metadata of versions is read, not their objects. Metadata that a package claims in
// an index layer is verified for the versions that are selected.
//
// A repository and the repository that it is rewritten to are one package: see
// Registry.Location.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// A Resolver resolves dependency trees. It is safe for concurrent use.
type Resolver struct {
	Registry Registry
	// Canonical returns the one name of a repository that has several names, such as the
	// name under which it is installed. Nil means that every repository has one name.
	Canonical func(repository string) string
	// DefaultRegistry is the registry of dependencies that do not name one. If it is empty,
	// such a dependency is an error: the registry is not guessed.
	DefaultRegistry string
	// Budget limits the work of the solver; see solver.Problem.
	Budget int
}

// A Request is the input of Resolve.
type Request struct {
	Roots []dependency.Root
	// Locked are versions that are kept as long as they satisfy all constraints: the
	// versions of a lock file, or the installed ones. Their dependencies are trusted, so
	// that they cost no request.
	Locked []lockfile.Package
	// Moves and Nearest restrict how locked packages change if not all of them can be
	// kept; see solver.Problem.
	Moves   solver.Moves
	Nearest bool
}

// A Result is a solution.
type Result struct {
	lockfile.File
	// Why lists, for each repository, the requirements on it and their requesters.
	Why map[string][]string
	// SetAside lists, for each repository, the tags that a user might expect and that were
	// not selected, with the reasons.
	SetAside map[string][]solver.SetAside
	// ListedBy maps repositories whose tags were listed by another repository, a mirror or
	// one to which they are rewritten, to that repository.
	ListedBy map[string]string
	// Notes are facts that a user should know: a version that cannot be used, a package
	// with two names, an outdated mirror. They are sorted, and also set with an error.
	Notes []string
}

// Resolve selects a version for everything that the roots require. It fails as solver.Solve
// does; with the error of a root that names one version that is not available; and with
// IndexMismatch for a package whose index layer differs from its package.yaml.
//
// All locked versions are kept if that is a solution. Tags come from the first location of
// a repository that lists any; if they have no solution, the tags of the next location are
// used.
func (r *Resolver) Resolve(ctx context.Context, q Request) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := aliases{}
	for {
		s := newSource(ctx, r, known.request(q), known)
		result, err := s.resolve(known.request(q))
		found := s.findAliases(q)
		// Every round finds at least one more name, so that the loop ends.
		if len(found) <= len(known) || maps.Equal(found, known) || err != nil && !unsolvable(err) {
			return result, err
		}
		known = found
	}
}

// resolve solves the problem with the names that the source knows.
func (s *source) resolve(q Request) (Result, error) {
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
		err = fmt.Errorf("%w (another endpoint may list more versions, and could not be reached: %w)", err, s.mirrorErr)
	}
	if err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	return s.result(q, solution)
}

func unsolvable(err error) bool {
	return errors.Is(err, solver.ErrUnsolvable) || errors.Is(err, solver.ErrCycle)
}

// solve runs the solver. If lockedOnly is true, a locked package has no other version.
func (s *source) solve(q Request, lockedOnly bool) (solver.Solution, error) {
	p := solver.Problem{
		Source: s, Installed: map[string]string{}, Moves: q.Moves, Nearest: q.Nearest,
		Roots: q.Roots, Budget: s.resolver.Budget, SkipExplanation: lockedOnly,
	}
	for _, locked := range q.Locked {
		p.Installed[locked.Repository] = locked.Pin()
	}
	s.prefetch(q.Roots, lockedOnly)
	return solver.Solve(p)
}

// checkNamedRoots returns the error of a root that names one version or a repository that is
// not available, which is more specific than that there is no solution.
func (s *source) checkNamedRoots(roots []dependency.Root) error {
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
