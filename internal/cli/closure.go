package cli

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/resolver"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// closureFlags name a closure that is not that of a cluster.
type closureFlags struct {
	Lock string `placeholder:"FILE" help:"Look at this lock file in place of the cluster."`
	resolverFlags
}

// of gives a closure: of the lock file, or of what is resolved now.
func (f closureFlags) of(env *Env, what []string) (_ lockfile.File, err error) {
	if f.Lock != "" {
		return readLock(env, f.Lock)
	}
	roots, err := whatArgs{what}.roots(f.DefaultRegistry)
	if err != nil {
		return lockfile.File{}, err
	}
	r, err := f.open(nil)
	if err != nil {
		return lockfile.File{}, err
	}
	defer closing(&err, r)
	got, err := r.resolve(env, resolver.Request{Roots: roots})
	return got.File, err
}

// closure is what is installed, as a lock file would have it. Its roots are the
// packages that people have installed.
func (i *installed) closure() lockfile.File {
	var f lockfile.File
	needs := map[string][]lockfile.Dependency{}
	for _, e := range i.lock.Packages {
		for _, d := range e.Dependencies {
			needs[e.Name] = append(needs[e.Name], lockfile.Dependency{Package: d.Package, Constraint: d.Constraints})
		}
		for _, d := range e.OptionalDependencies {
			needs[e.Name] = append(needs[e.Name], lockfile.Dependency{Package: d.Package, Constraint: d.Constraints, Optional: true})
		}
	}
	for _, x := range i.packages {
		ref, err := oci.ParseReference(x.PackageSpec().Package, oci.ParseOptions{})
		if err != nil {
			continue
		}
		p := lockfile.Package{
			Repository: ref.Name(), Version: ref.Tag, Digest: ref.Digest, Kind: xpkg.Kind(x.PackageKind()),
			Dependencies: needs[x.PackageStatus().CurrentRevision],
		}
		if d, err := oci.ParseDigest(x.PackageStatus().ResolvedDigest); err == nil {
			p.Digest = d
		}
		f.Packages = append(f.Packages, p)
		if !graph.IsAutoInstalled(x) {
			f.Roots = append(f.Roots, lockfile.Root{Package: p.Repository, Constraint: p.ShortVersion(), Exact: true})
		}
	}
	slices.SortFunc(f.Packages, func(a, b lockfile.Package) int { return cmp.Compare(a.Repository, b.Repository) })
	f.Packages = slices.CompactFunc(f.Packages, func(a, b lockfile.Package) bool { return a.Repository == b.Repository })
	return f
}
