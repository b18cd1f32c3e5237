package resolver

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// result converts a solution. It verifies the claimed metadata of the selected versions.
func (s *source) result(q Request, solution solver.Solution) (Result, error) {
	out := Result{Why: map[string][]string{}, setAside: map[string]iter.Seq[solver.SetAside]{}}
	if s.reconsider(solution.Picks, q.Roots) {
		return Result{}, errReconsider
	}
	if err := s.undecided(solution.Picks); err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	out.Roots = s.rootsWithProviders(solution.Picks, q.Roots)
	if err := s.verifyClaims(solution.Picks); err != nil {
		return Result{Notes: s.sortedNotes()}, err
	}
	for _, pick := range solution.Picks {
		if isVirtual(pick.Package) {
			continue
		}
		p, err := s.lockedPackage(pick)
		if err != nil {
			return Result{Notes: s.sortedNotes()}, err
		}
		p.Dependencies = s.withProviders(solution.Picks, p.Dependencies)
		out.Packages = append(out.Packages, p)
		out.Why[p.Repository], out.setAside[p.Repository] = pick.Why, pick.SetAside
	}
	slices.SortFunc(out.Packages, func(a, b lockfile.Package) int { return cmp.Compare(a.Repository, b.Repository) })
	recordProviders(&out.File)
	s.noteAliases()
	s.noteDuplicates(out.Packages)
	s.noteKindMismatches(solution.Picks, &out.File)
	out.Notes, out.ListedBy = s.sortedNotes(), s.listedBy()
	out.Withdrawn = slices.Sorted(maps.Keys(s.withdrawn))
	return out, nil
}

// lockedPackage returns the lock file entry of a selected version.
func (s *source) lockedPackage(pick solver.Pick) (lockfile.Package, error) {
	version := pin(pick)
	p := lockfile.Package{Repository: pick.Package, Version: pick.Tag}
	if kept, ok := s.locked[pick.Package]; ok && (kept.Pin() == version || kept.Version == version) {
		p = kept
	} else {
		t, ok := s.lookup(pick.Package, version)
		if !ok {
			return p, errcode.Unknown.New(nil, "%s %s was selected, but never read", pick.Package, version)
		}
		d, err := t.wait()
		if err != nil {
			return p, err
		}
		p.Digest, p.Kind = d.Digest, d.Meta.Kind
	}
	p.Dependencies = pick.Dependencies
	return p, nil
}

func pin(pick solver.Pick) string {
	if pick.Tag == "" || pick.Digest == "" {
		return pick.Version()
	}
	return pick.Tag + "@" + pick.Digest
}

// noteDuplicates notes packages with the same content: a mirror, or an unchanged fork.
func (s *source) noteDuplicates(packages []lockfile.Package) {
	names := map[oci.Digest]string{}
	for _, p := range packages {
		if other, ok := names[p.Digest]; ok {
			s.note(fmt.Sprintf("%s and %s have the same content, %s", other, p.Repository, p.Digest.Short()))
		}
		names[p.Digest] = p.Repository
	}
}

// noteKindMismatches notes dependencies whose kind differs from the kind of the package.
func (s *source) noteKindMismatches(picks []solver.Pick, f *lockfile.File) {
	for _, pick := range picks {
		t, ok := s.lookup(pick.Package, pin(pick))
		if !ok || t.err != nil {
			continue
		}
		for _, d := range t.value.Meta.Dependencies() {
			if to, ok := f.Find(s.identity(d.Package)); ok && d.Kind != "" && d.Kind != string(to.Kind) {
				s.note(fmt.Sprintf("%s expects %s to be a %s, but it is a %s", pick.Package, to.Repository, d.Kind, to.Kind))
			}
		}
	}
}

// verifyClaims reads the package.yaml of each selected version whose metadata was claimed.
func (s *source) verifyClaims(picks []solver.Pick) error {
	errs := make([]error, len(picks))
	var proofs sync.WaitGroup
	for i, pick := range picks {
		t, ok := s.lookup(pick.Package, pin(pick))
		if !ok {
			continue
		}
		claim, err := t.wait()
		if err != nil || !claim.Claimed {
			continue
		}
		proofs.Go(func() {
			var proof Metadata
			var ref oci.Reference
			if ref, errs[i] = reference(pick.Package, pin(pick)); errs[i] == nil {
				proof, errs[i] = s.resolver.Registry.Verify(s.ctx, ref, claim.Digest)
			}
			same := slices.Equal(proof.Meta.Dependencies(), claim.Meta.Dependencies()) &&
				slices.Equal(proof.Meta.Kinds, claim.Meta.Kinds) && proof.Meta.Kind == claim.Meta.Kind
			if errs[i] == nil && !same {
				errs[i] = indexlayer.ErrMismatch.New(
					nil, "the dependencies in the index layer of %s %s differ from its package.yaml", pick.Package, pin(pick),
				)
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

// noteWithdrawn adds a note about a version with a status that the solver can select.
func (s *source) noteWithdrawn(text string) {
	s.note(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withdrawn[text] = true
}

// sortedNotes returns the notes, sorted.
func (s *source) sortedNotes() []string {
	s.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.notes))
}
