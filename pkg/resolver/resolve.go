// Package resolver selects one version of every package that a set of roots requires, from the
// versions that registries provide.
//
//	Request ──▶ Resolver ──▶ Result: a lock file, and the reason for each version
//	               │  ▲
//	    questions  │  │  versions and dependencies, read ahead
//	               ▼  │
//	           pkg/solver      Registry ◀── the caller
//
// The solver asks one question at a time. The resolver prefetches the answers: it assumes that the highest version that
// satisfies each dependency is selected, and reads all of these versions concurrently. The time for a resolution
// therefore depends on the depth of the tree, not on its size; with Hints, it depends on neither. The solver gets
// answers only when no request is in progress, so that the requests and the solution do not depend on the speed of
// registries.
//
// Only the metadata of versions is read, not their objects. Metadata from an index layer is
// verified for the selected versions.
//
// A repository and the repository that it is rewritten to are one package: see
// Registry.Location.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// A Resolver resolves dependency trees. It is safe for concurrent use.
type Resolver struct {
	Registry Registry
	// Canonical returns the canonical name of a repository with several names, such as the
	// name under which it is installed. Nil means that every repository has only one name.
	Canonical func(repository string) string
	// DefaultRegistry is the registry of dependencies that do not name one. If it is empty,
	// such a dependency is an error: the registry is not guessed.
	DefaultRegistry string
	// Kinds finds the providers of kinds that packages require without naming a package. If it is nil, such dependencies
	// are ignored.
	Kinds Kinds
	// Hints predict dependencies. Nil means that every package is read before its dependencies are.
	Hints Hints
	// Budget limits the work of the solver; see solver.Problem.
	Budget int
}

// A Request is the input of Resolve.
type Request struct {
	Roots []dependency.Root
	// Locked lists versions that are kept as long as they satisfy all constraints: the
	// versions of a lock file, or the installed ones. Their dependencies are trusted and
	// require no request.
	Locked []lockfile.Package
	// Installed lists versions that are in use, and that a solution need not keep. Unlike others, they can be selected
	// after they were yanked, retracted or deprecated.
	Installed []lockfile.Package
	// Upgrade lets locked packages change if a higher version of a package that is not locked needs other versions of
	// them. Otherwise, all locked versions are kept if they are a solution.
	Upgrade bool
	// Provides maps kinds to the dependencies on the packages that were selected for them before, in addition to those of
	// Locked. They stay selected, also if Locked does not contain the package, and keep their constraint if no source
	// knows one.
	Provides map[dependency.KindRef]dependency.Dependency
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
	// ListedBy maps repositories whose tags were listed by another repository (a mirror, or
	// the repository to which they are rewritten) to that repository.
	ListedBy map[string]string
	// Notes lists facts for the user, sorted: versions that cannot be used, packages with two
	// names, outdated mirrors. It is also set if Resolve fails.
	Notes []string
	// Withdrawn lists the notes about versions that were yanked, retracted or deprecated and are selected nevertheless.
	Withdrawn []string

	setAside map[string]iter.Seq[solver.SetAside]
}

// SetAside iterates over the tags of a repository that a user might expect and that were not selected, newest first,
// with the reasons.
func (r Result) SetAside(repository string) iter.Seq[solver.SetAside] {
	if tags, ok := r.setAside[repository]; ok {
		return tags
	}
	return func(func(solver.SetAside) bool) {}
}

// Resolve selects a version of each package that the roots require. It fails with the errors
// of solver.Solve, with the error of a root that names an unavailable version, or with
// IndexMismatch for a package whose index layer differs from its package.yaml.
//
// It keeps all locked versions if they are a solution, unless the request is an upgrade. It uses the tags of the first
// location of a repository that lists any, and the tags of the next location if there is no solution.
func (r *Resolver) Resolve(ctx context.Context, q Request) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known, kinds := aliases{}, newKindChoices(q)
	for {
		s := newSource(ctx, r, known.request(q), known)
		s.kinds = kinds
		result, err := s.resolve(known.request(q))
		s.ahead.stop()
		if errors.Is(err, errReconsider) {
			continue // Every round decides at least one more kind.
		}
		found := s.findAliases(q)
		// Every round finds at least one more name, so the loop ends.
		if len(found) <= len(known) || maps.Equal(found, known) || err != nil && !unsolvable(err) {
			if err == nil {
				r.remember(ctx, q.Locked, result.Packages)
			}
			return result, err
		}
		known = found
	}
}

// resolve solves the problem with the known names.
func (s *source) resolve(q Request) (Result, error) {
	defer s.wait()
	var err error
	if q.Roots, err = s.virtualRoots(q.Roots); err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	if len(q.Locked) > 0 && !q.Upgrade {
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
	if unsolvable(err) && s.skipped {
		s.deprecated = true
		solution, err = s.solve(q, false)
	}
	if unsolvable(err) && s.unlisted != nil {
		err = s.unlisted // Another version of the package may be a solution.
	}
	if unsolvable(err) && s.mirrorErr != nil {
		err = fmt.Errorf("%w (another endpoint may list more versions, and could not be reached: %w)", err, s.mirrorErr)
	}
	if err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	return s.result(q, solution)
}

// errReconsider reports that a solution decides the providers of kinds for another round.
var errReconsider = errors.New("the solution selects other providers")

func unsolvable(err error) bool {
	return errors.Is(err, solver.ErrUnsolvable) || errors.Is(err, solver.ErrCycle)
}

// solve runs the solver. If lockedOnly is true, locked packages cannot change.
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
// not available, which is more specific than the error of the solver.
func (s *source) checkNamedRoots(roots []dependency.Root) error {
	for _, root := range roots {
		if root.Optional || isVirtual(root.Package) {
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
