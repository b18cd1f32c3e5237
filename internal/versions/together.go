package versions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// NewestTogether returns the packages with the newest versions of all packages that users installed, as one solution
// of all dependencies. Dependencies change only where a new version requires it, and no package moves to an older
// version. If repositories are selected, only their packages move: to the tag of the selection, or to the newest
// version if it is empty. A version from which a package was rolled back is selected only by name. Notes name newer
// versions that are not selected and the reasons. With an error, others are the repositories of packages that have a
// solution without those that cause it, and from no version of which a package was rolled back.
func (r *Finder) NewestTogether(
	ctx context.Context, all *inventory.Inventory, selected map[string]string,
) (f lockfile.File, notes, others []string, err error) {
	before, roots := Installed(all)
	if selected != nil {
		roots = selectedRoots(before, roots, selected)
	}
	wanted := notOlder(before, roots, selected)
	left := map[string][]string{}
	var held []dependency.Root
	if selected == nil {
		left = leftVersions(all)
		wanted, held, notes = withoutVersions(wanted, left)
	}
	newest, err := r.resolve(ctx, resolver.Request{Roots: slices.Concat(wanted, held), Installed: before.Packages})
	if err != nil {
		if selected == nil {
			others = slices.DeleteFunc(
				r.solvable(ctx, before, wanted), func(repository string) bool { return len(left[repository]) > 0 },
			)
		}
		return lockfile.File{}, nil, others, err
	}
	// The first solution has the newest dependencies, too. The second one keeps them if it can.
	q := resolver.Request{Roots: held, Installed: before.Packages}
	for _, root := range roots {
		p, ok := newest.Find(root.Package)
		if !ok {
			continue
		}
		q.Roots = append(q.Roots, dependency.Root{Package: root.Package, Constraint: p.Pin(), Exact: true})
		if note := heldVersion(p, newest.SetAside, left[root.Package]); note != "" && isNewest(selected, root.Package) {
			notes = append(notes, note)
		}
	}
	for _, p := range before.Packages {
		if !slices.ContainsFunc(roots, func(root dependency.Root) bool { return root.Package == p.Repository }) {
			q.Locked = append(q.Locked, p)
		}
	}
	got, err := r.resolve(ctx, q)
	return got.File, notes, nil, err
}

// leftVersions returns the versions, by repository, from which packages were rolled back and that are newer than the
// present one.
func leftVersions(all *inventory.Inventory) map[string][]string {
	out := map[string][]string{}
	for _, p := range all.Packages {
		ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
		if err != nil || ref.Tag == "" {
			continue
		}
		for _, image := range revision.RolledBackFrom(p) {
			left, err := oci.ParseReference(image, oci.ParseOptions{})
			if err == nil && left.SameRepository(ref) && Older(ref.Tag, left.Tag) {
				out[ref.Name()] = append(out[ref.Name()], left.Tag)
			}
		}
	}
	return out
}

// withoutVersions returns roots that do not accept some versions, by repository, held roots that exclude the versions
// of packages that are dependencies, and a note for each version.
func withoutVersions(roots []dependency.Root, left map[string][]string) (out, held []dependency.Root, notes []string) {
	out = slices.Clone(roots)
	for _, repository := range slices.Sorted(maps.Keys(left)) {
		i := slices.IndexFunc(out, func(root dependency.Root) bool { return root.Package == repository })
		if i >= 0 && out[i].Exact {
			continue
		}
		except := "!=" + strings.Join(left[repository], " !=")
		if i >= 0 {
			out[i].Constraint += " " + except
		} else {
			held = append(held, dependency.Root{Package: repository, Constraint: except, Optional: true})
		}
		for _, version := range left[repository] {
			notes = append(notes, fmt.Sprintf(
				"%[1]s %[2]s is not selected, because the package was rolled back from it; `xpkg update %[1]s:%[2]s` updates to it",
				repository, version,
			))
		}
	}
	return out, held, notes
}

// solvable returns the packages of roots whose components, by their dependencies, have a solution without the other
// components.
func (r *Finder) solvable(ctx context.Context, f lockfile.File, roots []dependency.Root) []string {
	var out []string
	graph, seen := f.Graph(), map[string]bool{}
	for _, root := range roots {
		if seen[root.Package] || ctx.Err() != nil {
			continue
		}
		var component []dependency.Root
		var names []string
		connected := graph.Component(root.Package)
		for _, other := range roots {
			if connected[other.Package] {
				component, names = append(component, other), append(names, other.Package)
				seen[other.Package] = true
			}
		}
		if _, err := r.Resolve(ctx, resolver.Request{Roots: component, Installed: f.Packages}); err == nil {
			out = append(out, names...)
		}
	}
	return out
}

// selectedRoots returns the roots that dependencies connect with the selected packages, and the selected packages,
// which can be dependencies, at the tags of the selection. A digest or a reference in the selection changes no root.
func selectedRoots(f lockfile.File, roots []dependency.Root, selected map[string]string) []dependency.Root {
	connected := f.Graph().Component(slices.Collect(maps.Keys(selected))...)
	out := slices.DeleteFunc(slices.Clone(roots), func(root dependency.Root) bool { return !connected[root.Package] })
	for _, p := range f.Packages {
		tag, ok := selected[p.Repository]
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(root dependency.Root) bool { return root.Package == p.Repository })
		if i < 0 {
			i = len(out)
			out = append(out, dependency.Root{
				Package: p.Repository, Constraint: cmp.Or(p.Version, p.Digest.String()), Exact: true,
			})
		}
		if tag != "" && !strings.ContainsAny(tag, "/:@") {
			out[i].Constraint = tag
		}
	}
	return out
}

// isNewest reports whether a package moves to its newest version. Nil selects all packages.
func isNewest(selected map[string]string, repository string) bool {
	tag, ok := selected[repository]
	return selected == nil || ok && tag == ""
}

// notOlder returns roots that accept the installed version and all newer releases for the packages that move to their
// newest version. A package that is installed by another tag than a version, or by digest, stays as it is.
func notOlder(f lockfile.File, roots []dependency.Root, selected map[string]string) []dependency.Root {
	out := slices.Clone(roots)
	for i, root := range out {
		p, ok := f.Find(root.Package)
		if !ok || p.Version == "" || !isNewest(selected, root.Package) {
			continue
		}
		if v := version.Parse(p.Version); v.Usable() {
			out[i] = dependency.Root{Package: root.Package, Constraint: orNewer(&v)}
		}
	}
	return out
}

// orNewer returns a constraint that accepts a version and all newer releases. It accepts no other prereleases: those of
// xpkg dev, for example, have no order.
func orNewer(v *version.Version) string {
	if !v.Prerelease() {
		return ">=" + v.Tag
	}
	is := v.Semver()
	return fmt.Sprintf("=%s || >=%d.%d.%d", v.Tag, is.Major(), is.Minor(), is.Patch())
}

// heldVersion describes the newest release of a package, except some versions, that is not selected, or returns "" if
// the newest one is.
func heldVersion(p lockfile.Package, setAside SetAsideOf, except []string) string {
	for s := range setAside(p.Repository) {
		if slices.Contains(except, s.Tag) {
			continue
		}
		if v := version.Parse(s.Tag); v.Usable() && !v.Prerelease() && Older(p.Version, s.Tag) {
			return fmt.Sprintf("%s %s exists: %s", p.Repository, s.Tag, s.Reason)
		}
	}
	return ""
}
