// Package resolve finds one version for everything that some packages need, by what
// registries have.
//
// Solving is left to internal/solve, which asks one question at a time. What makes
// it quick is here: while nothing is known that speaks against it, the highest
// version that fits each dependency is the one that will be chosen, so all of these
// are read ahead, each as soon as somebody is found to need it. What counts is then
// how deep a tree is, and not how large.
//
// Who installs nothing needs no objects: of each version only its metadata is read,
// see [content.Source.Describe].
package resolve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/solve"
)

// Registry is where packages are looked up; a content.Source is one.
type Registry interface {
	// Tags lists the tags of a repository.
	Tags(ctx context.Context, o content.Origin) ([]string, error)
	// Describe tells what a package says about itself: the content with the digest,
	// or, when that is zero, with the digest or the tag of the origin.
	Describe(ctx context.Context, o content.Origin, d oci.Digest) (content.Description, error)
	// Prove is Describe, by package.yaml alone.
	Prove(ctx context.Context, o content.Origin, d oci.Digest) (content.Description, error)
}

// Resolver resolves. It can be used by many goroutines.
type Resolver struct {
	Registry Registry
	// Locate tells where the content of a reference is; it is at the reference itself
	// when nil.
	Locate func(ctx context.Context, ref oci.Reference) (content.Origin, error)
	// DefaultRegistry is where dependencies are that name no registry. Without it
	// there are none such: which registry was meant is not guessed.
	DefaultRegistry string
	// PerHost bounds the requests to one host that are under way at the same time; 50
	// when it is zero.
	PerHost int
	// Budget is that of [solve.Problem].
	Budget int
}

// Request is what is to be resolved.
type Request struct {
	Roots []lockfile.Root
	// Kept are versions that stay as long as they fit: those of a lock file, or what
	// is installed. What depends on them is believed, so that they cost no request.
	Kept []lockfile.Package
	// Moves and Nearest are those of [solve.Problem]: how what is kept may change where
	// not all of it can stay.
	Moves   solve.Moves
	Nearest bool
}

// Result is what was found.
type Result struct {
	lockfile.File
	// Why says of each repository who asked for it, and with which constraint.
	Why map[string][]string
	// SetAside says of each repository which tags that could have been expected were
	// not chosen, and why.
	SetAside map[string][]solve.SetAside
	// Notes are what a person should know: a version that cannot be used, a package
	// under two names. They are there for a failure, too, and in a fixed order.
	Notes []string
}

// Resolve finds a version for everything that the roots need. It fails as
// [solve.Solve] does; with the failure of a root that names one version which
// cannot be had; and with IndexMismatch for a package that has lied about itself.
//
// First all of what is kept stays, and only where there is no such solution
// anything of it moves.
func (r *Resolver) Resolve(ctx context.Context, q Request) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newSource(ctx, r, q.Kept)
	defer s.wait()
	if len(q.Kept) > 0 {
		if solution, err := s.solve(q, true); err == nil {
			return s.result(q, solution)
		} else if !unsolvable(err) {
			return Result{Notes: s.told()}, err
		}
	}
	if err := s.named(q.Roots); err != nil {
		return Result{Notes: s.told()}, err
	}
	solution, err := s.solve(q, false)
	if err != nil {
		return Result{Notes: s.told()}, err
	}
	return s.result(q, solution)
}

func unsolvable(err error) bool {
	return solve.ErrUnsolvable.Is(err) || solve.ErrCycle.Is(err)
}

// solve solves with what is kept: held says that nothing else is to be considered of
// these packages.
func (s *source) solve(q Request, held bool) (solve.Solution, error) {
	p := solve.Problem{
		Source: s, Installed: map[string]string{}, Moves: q.Moves, Nearest: q.Nearest,
		Budget: s.resolver.Budget, Unexplained: held,
	}
	for _, kept := range q.Kept {
		p.Installed[kept.Package] = kept.Pin()
	}
	for _, root := range q.Roots {
		p.Roots = append(p.Roots, solve.Root{Package: root.Package, Constraint: root.Constraint, Exact: root.Exact, Name: root.By})
	}
	s.held = held
	for _, root := range q.Roots {
		s.need(root.Package, root.Constraint, root.Exact)
	}
	s.wait()
	return solve.Solve(p)
}

// named fails with what is wrong with a root that names one version, which says
// more than that there is no solution.
func (s *source) named(roots []lockfile.Root) error {
	s.held = false
	for _, root := range roots {
		s.need(root.Package, root.Constraint, root.Exact)
	}
	s.wait()
	for _, root := range roots {
		version := root.Constraint
		if !root.Exact {
			version = solve.ParseConstraint(root.Constraint).Named()
		}
		if version == "" {
			if _, err := s.list(root.Package).get(); isNotFound(err) {
				return err
			}
			continue
		}
		if t, ok := s.known(root.Package, version); ok && t.cause != nil {
			return t.cause
		}
	}
	return nil
}

// result makes the file of a solution. What was claimed of a version that was chosen
// is proven now.
func (s *source) result(q Request, solution solve.Solution) (Result, error) {
	out := Result{Why: map[string][]string{}, SetAside: map[string][]solve.SetAside{}}
	out.Roots = slices.Clone(q.Roots)
	if err := s.prove(solution.Picks); err != nil {
		return Result{Notes: s.told()}, err
	}
	for _, pick := range solution.Picks {
		p, err := s.locked(pick)
		if err != nil {
			return Result{Notes: s.told()}, err
		}
		out.Packages = append(out.Packages, p)
		out.Why[p.Package], out.SetAside[p.Package] = pick.Why, pick.SetAside
	}
	slices.SortFunc(out.Packages, func(a, b lockfile.Package) int { return cmp.Compare(a.Package, b.Package) })
	s.same(out.Packages)
	s.kinds(solution.Picks, &out.File)
	out.Notes = s.told()
	return out, nil
}

// locked is a pick with its digest and kind.
func (s *source) locked(pick solve.Pick) (lockfile.Package, error) {
	version := pin(pick)
	p := lockfile.Package{Package: pick.Package, Version: pick.Tag}
	if kept, ok := s.kept[pick.Package]; ok && kept.Pin() == version {
		p = kept
	} else {
		t, ok := s.known(pick.Package, version)
		if !ok {
			return p, failure.Unknown.New(nil, "%s %s was chosen and never read", pick.Package, version)
		}
		d, err := t.get()
		if err != nil {
			return p, err
		}
		p.Digest, p.Kind = d.Digest, d.Meta.Kind
	}
	p.Dependencies = nil
	for _, d := range pick.Dependencies {
		p.Dependencies = append(p.Dependencies, lockfile.Dependency{Package: d.Package, Constraint: d.Constraint})
	}
	return p, nil
}

func pin(pick solve.Pick) string {
	if pick.Tag == "" || pick.Digest == "" {
		return pick.Version()
	}
	return pick.Tag + "@" + pick.Digest
}

// same notes where two packages are one under two names: a mirror, or a fork that was
// not changed.
func (s *source) same(packages []lockfile.Package) {
	names := map[oci.Digest]string{}
	for _, p := range packages {
		if other, ok := names[p.Digest]; ok {
			s.note(fmt.Sprintf("%s and %s are the same content, %s, under two names", other, p.Package, p.Digest.Short()))
		}
		names[p.Digest] = p.Package
	}
}

// kinds notes where somebody takes a package for one of another kind than it is.
func (s *source) kinds(picks []solve.Pick, f *lockfile.File) {
	for _, pick := range picks {
		t, ok := s.known(pick.Package, pin(pick))
		if !ok || t.err != nil {
			continue
		}
		for _, d := range t.value.Meta.DependsOn {
			if to, ok := f.Find(s.resolver.identity(d.Package)); ok && d.Kind != "" && d.Kind != to.Kind {
				s.note(fmt.Sprintf("%s takes %s for a %s, and it is a %s", pick.Package, to.Package, d.Kind, to.Kind))
			}
		}
	}
}
