package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/indexlayer"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/solve"
)

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
	out.Notes, out.ListedBy = s.told(), s.listedBy()
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
		p.Dependencies = append(p.Dependencies, lockfile.Dependency(d))
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
		for _, d := range t.value.Meta.Dependencies() {
			if to, ok := f.Find(s.resolver.identity(d.Package)); ok && d.Kind != "" && d.Kind != to.Kind {
				s.note(fmt.Sprintf("%s takes %s for a %s, and it is a %s", pick.Package, to.Package, d.Kind, to.Kind))
			}
		}
	}
}

// prove reads the package.yaml of what was chosen and only claimed so far.
func (s *source) prove(picks []solve.Pick) error {
	errs := make([]error, len(picks))
	var proofs sync.WaitGroup
	for i, pick := range picks {
		t, ok := s.known(pick.Package, pin(pick))
		if !ok {
			continue
		}
		claim, err := t.get()
		if err != nil || !claim.Claimed {
			continue
		}
		proofs.Go(func() {
			var proof content.Description
			proof, errs[i] = ask(s, pick.Package, pin(pick), func(o content.Origin) (content.Description, error) {
				return s.resolver.Registry.Prove(s.ctx, o, claim.Digest)
			})
			same := slices.Equal(proof.Meta.Dependencies(), claim.Meta.Dependencies()) && proof.Meta.Kind == claim.Meta.Kind
			if errs[i] == nil && !same {
				errs[i] = indexlayer.ErrMismatch.New(nil, "%s %s claims to need something else than its package.yaml says", pick.Package, pin(pick))
			}
		})
	}
	proofs.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *source) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes[text] = true
}

// told gives what was noted, in order.
func (s *source) told() []string {
	s.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.notes))
}
