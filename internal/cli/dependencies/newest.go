package dependencies

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// NewestTogether returns the packages with the newest versions of all packages that users installed, as one solution of
// all dependencies. Dependencies change only where a new version requires it, and no package moves to an older version.
// Notes name newer versions that are not selected and the reasons.
func (c *OutdatedCmd) NewestTogether(env *terminal.Env) (f lockfile.File, notes []string, err error) {
	before, roots, locate, err := c.closure(env)
	if err != nil {
		return lockfile.File{}, nil, err
	}
	r, err := c.resolverFlags.open(env, locate)
	if err != nil {
		return lockfile.File{}, nil, err
	}
	defer terminal.Close(&err, r)
	newest, err := r.resolve(env, resolver.Request{Roots: notOlder(before, roots)})
	if err != nil {
		return lockfile.File{}, nil, err
	}
	// The first solution has the newest dependencies, too. The second one keeps them if it can.
	q := resolver.Request{}
	for _, root := range roots {
		p, ok := newest.Find(root.Package)
		if !ok {
			continue
		}
		q.Roots = append(q.Roots, dependency.Root{Package: root.Package, Constraint: p.Pin(), Exact: true})
		if note := heldVersion(p, newest); note != "" {
			notes = append(notes, note)
		}
	}
	for _, p := range before.Packages {
		if !slices.ContainsFunc(roots, func(root dependency.Root) bool { return root.Package == p.Repository }) {
			q.Locked = append(q.Locked, p)
		}
	}
	got, err := r.resolve(env, q)
	return got.File, notes, err
}

// notOlder returns roots that accept the installed version and all newer ones. A package that is installed by another
// tag than a version, or by digest, stays as it is.
func notOlder(f lockfile.File, roots []dependency.Root) []dependency.Root {
	out := slices.Clone(roots)
	for i, root := range out {
		p, ok := f.Find(root.Package)
		if !ok || p.Version == "" {
			continue
		}
		if _, err := semver.NewVersion(p.Version); err == nil {
			out[i] = dependency.Root{Package: root.Package, Constraint: ">=" + p.Version}
		}
	}
	return out
}

// heldVersion describes the newest release of a package that is not selected, or returns "" if the newest one is.
func heldVersion(p lockfile.Package, got resolver.Result) string {
	for _, s := range got.SetAside[p.Repository] {
		if v := version.Parse(s.Tag); v.Usable() && !v.Prerelease() && olderVersion(p.Version, s.Tag) {
			return fmt.Sprintf("%s %s exists: %s", p.Repository, s.Tag, s.Reason)
		}
	}
	return ""
}
