package versions

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// countingRegistry is a registry of packages, with the dependencies of each version, that counts its requests.
type countingRegistry struct {
	versions map[string]map[string][]dependency.Dependency
	// unreadable is a repository whose registry does not respond.
	unreadable string
	mu         sync.Mutex
	requests   map[string]int
}

func (r *countingRegistry) count(request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[request]++
}

// Location implements [resolver.Registry].
func (r *countingRegistry) Location(_ context.Context, repository oci.Reference) (string, error) {
	return repository.Name(), nil
}

// Versions implements [resolver.Registry].
func (r *countingRegistry) Versions(_ context.Context, repository oci.Reference) (resolver.Versions, error) {
	r.count(repository.Name())
	if repository.Name() == r.unreadable {
		return resolver.Versions{}, remote.ErrRegistryUnavailable.New(nil, "%s does not respond", repository)
	}
	return resolver.Versions{Tags: slices.Sorted(maps.Keys(r.versions[repository.Name()])), From: repository}, nil
}

// Metadata implements [resolver.Registry].
func (r *countingRegistry) Metadata(_ context.Context, version oci.Reference) (resolver.Metadata, error) {
	r.count(version.String())
	dependencies, ok := r.versions[version.Name()][version.Tag]
	if !ok {
		return resolver.Metadata{}, oci.ErrManifestNotFound.New(nil, "%s does not exist", version)
	}
	return resolver.Metadata{Digest: oci.DigestOf([]byte(version.Tag)), Meta: xpkg.Meta{DependsOn: dependencies}}, nil
}

// Status implements [resolver.Registry].
func (*countingRegistry) Status(context.Context, oci.Reference, []string) (*catalog.Status, error) {
	return nil, nil
}

// Verify implements [resolver.Registry].
func (r *countingRegistry) Verify(ctx context.Context, version oci.Reference, _ oci.Digest) (resolver.Metadata, error) {
	return r.Metadata(ctx, version)
}

// The comparison of packages that users installed names the dependencies that hold a package, and asks the registry
// once for each list and each version, however many packages there are.
func TestOutdatedNamesDependenciesThatHoldAPackage(t *testing.T) {
	const top, base, other = "r.example/acme/top", "r.example/acme/base", "r.example/acme/other"
	registry := &countingRegistry{requests: map[string]int{}, versions: map[string]map[string][]dependency.Dependency{
		top:   {"v1.0.0": {{Package: base, Constraint: ">=v1.0.0"}}, "v2.0.0": {{Package: base, Constraint: ">=v2.0.0"}}},
		other: {"v1.0.0": {{Package: base, Constraint: ">=v1.0.0"}}, "v2.0.0": {{Package: base, Constraint: ">=v1.0.0"}}},
		base:  {"v1.0.0": nil, "v2.0.0": nil},
	}}
	r := &Finder{Resolver: &resolver.Resolver{Registry: &rememberingRegistry{Registry: registry}}}
	var f lockfile.File
	var roots []dependency.Root
	for _, repository := range []string{base, other, top} {
		f.Packages = append(f.Packages, lockfile.Package{
			Repository: repository, Version: "v1.0.0", Digest: oci.DigestOf([]byte("v1.0.0")),
			Dependencies: registry.versions[repository]["v1.0.0"],
		})
		roots = append(roots, dependency.Root{Package: repository, Constraint: "v1.0.0", Exact: true})
	}
	for repository, want := range map[string][3]string{
		top: {"v1.0.0", "base >=v2.0.0", "needs base >=v2.0.0"}, base: {"v2.0.0"}, other: {"v2.0.0"},
	} {
		p, _ := f.Find(repository)
		row := compareVersions(&f, p, []string{"v1.0.0", "v2.0.0"})
		row.Compatible = r.newestSolvable(t.Context(), f, roots, p, &row)
		row.Needs = r.unsatisfied(t.Context(), f, roots, p, row)
		if needs := slices.Concat(row.Needs, []string{""})[0]; row.Compatible != want[0] || needs != want[1] ||
			row.Held() != want[2] {
			t.Errorf(
				"%s: compatible %q, needs %q, held by %q, unknown %q, want %q", repository, row.Compatible, row.Needs, row.Held(),
				row.Unknown, want,
			)
		}
	}
	for request, n := range registry.requests {
		if n > 1 {
			t.Errorf("%d requests for %s", n, request)
		}
	}
}

// A dependency that cannot be read concerns only the packages that it is connected with: the newest versions of
// others are compatible unless they need another version of a package that a user installed.
func TestUnreadableDependencyConcernsItsDependentsOnly(t *testing.T) {
	const lost, broken, fine, kept, needy = "r.example/acme/lost", "r.example/acme/broken", "r.example/acme/fine",
		"r.example/acme/kept", "r.example/acme/needy"
	registry := &countingRegistry{
		requests: map[string]int{}, unreadable: lost, versions: map[string]map[string][]dependency.Dependency{
			broken: {"v1.0.0": {{Package: lost, Constraint: ">=v1.0.0"}}, "v2.0.0": {{Package: lost, Constraint: ">=v1.0.0"}}},
			fine:   {"v1.0.0": nil, "v2.0.0": {{Package: kept, Constraint: ">=v1.0.0"}}},
			kept:   {"v1.0.0": nil, "v2.0.0": nil},
			needy:  {"v1.0.0": nil, "v2.0.0": {{Package: kept, Constraint: ">=v2.0.0"}}},
		}}
	r := &Finder{Resolver: &resolver.Resolver{Registry: &rememberingRegistry{Registry: registry}}}
	var f lockfile.File
	var roots []dependency.Root
	for _, repository := range []string{broken, fine, kept, needy} {
		f.Packages = append(f.Packages, lockfile.Package{
			Repository: repository, Version: "v1.0.0", Digest: oci.DigestOf([]byte("v1.0.0")),
			Dependencies: registry.versions[repository]["v1.0.0"],
		})
		roots = append(roots, dependency.Root{Package: repository, Constraint: "v1.0.0", Exact: true})
	}
	for repository, want := range map[string]string{broken: "", fine: "v2.0.0", kept: "v2.0.0", needy: "v1.0.0"} {
		p, _ := f.Find(repository)
		row := compareVersions(&f, p, []string{"v1.0.0", "v2.0.0"})
		row.Compatible = r.newestSolvable(t.Context(), f, roots, p, &row)
		if row.Compatible != want || (row.Unknown != "") != (repository == broken) ||
			row.UnknownVersions() != "compatible versions" {
			t.Errorf(
				"%s: compatible %q, %s unknown %q, want %q", repository, row.Compatible, row.UnknownVersions(), row.Unknown, want,
			)
		}
	}
	if got := r.solvable(t.Context(), f, roots); !slices.Equal(got, []string{fine, kept, needy}) {
		t.Errorf("%v can be updated without the package with the unreadable dependency", got)
	}
}

// Packages whose installed versions contradict each other concern only the packages that they are connected with: the
// newest versions of others are compatible unless they need a version of a package that its other dependents do not
// accept.
func TestConflictConcernsItsPackagesOnly(t *testing.T) {
	const base, broken, fine, shared, holder, needy = "r.example/acme/base", "r.example/acme/broken",
		"r.example/acme/fine", "r.example/acme/shared", "r.example/acme/holder", "r.example/acme/needy"
	registry := &countingRegistry{requests: map[string]int{}, versions: map[string]map[string][]dependency.Dependency{
		base:   {"v1.0.0": nil, "v2.0.0": nil},
		broken: {"v1.0.0": {{Package: base, Constraint: "v2.0.0"}}},
		fine:   {"v1.0.0": nil, "v2.0.0": nil},
		shared: {"v1.0.0": nil, "v2.0.0": nil},
		holder: {"v1.0.0": {{Package: shared, Constraint: "v1.0.0"}}},
		needy:  {"v1.0.0": nil, "v2.0.0": {{Package: shared, Constraint: "v2.0.0"}}},
	}}
	r := &Finder{Resolver: &resolver.Resolver{Registry: &rememberingRegistry{Registry: registry}}}
	var f lockfile.File
	var roots []dependency.Root
	for _, repository := range []string{base, broken, fine, holder, needy, shared} {
		f.Packages = append(f.Packages, lockfile.Package{
			Repository: repository, Version: "v1.0.0", Digest: oci.DigestOf([]byte("v1.0.0")),
			Dependencies: registry.versions[repository]["v1.0.0"],
		})
		if repository != shared {
			roots = append(roots, dependency.Root{Package: repository, Constraint: "v1.0.0", Exact: true})
		}
	}
	for repository, want := range map[string][2]string{fine: {"v2.0.0"}, needy: {"v1.0.0", "its dependencies"}} {
		p, _ := f.Find(repository)
		row := compareVersions(&f, p, []string{"v1.0.0", "v2.0.0"})
		row.Compatible = r.newestSolvable(t.Context(), f, roots, p, &row)
		if row.Compatible != want[0] || row.Held() != want[1] || row.Unknown != "" {
			t.Errorf(
				"%s: compatible %q, held by %q, unknown %q, want %q", repository, row.Compatible, row.Held(), row.Unknown, want,
			)
		}
	}
}

// An update of all packages does not select the versions from which packages were rolled back, and selects newer ones.
func TestUpdateOfAllKeepsRollbacks(t *testing.T) {
	const boats, rafts, needed = "r.example/acme/boats", "r.example/acme/rafts", "r.example/acme/needed"
	roots := []dependency.Root{{Package: boats, Constraint: ">=v1.0.0"}, {
		Package: rafts, Constraint: "v1.0.0", Exact: true,
	}}
	got, held, notes := withoutVersions(roots, map[string][]string{
		boats: {"v1.1.0", "v2.0.0"}, rafts: {"v2.0.0"}, needed: {"v1.4.0"},
	})
	for tag, want := range map[string]bool{
		"v1.0.0": true, "v1.1.0": false, "v1.2.0": true, "v2.0.0": false, "v3.0.0": true,
	} {
		if version.ParseConstraint(got[0].Constraint).Accepts(tag) != want {
			t.Errorf("%s accepts %s: %t", got[0].Constraint, tag, !want)
		}
	}
	if got[1] != roots[1] || len(notes) != 3 {
		t.Errorf("got %+v with the notes %q", got[1], notes)
	}
	if want := []dependency.Root{{Package: needed, Constraint: "!=v1.4.0", Optional: true}}; !slices.Equal(held, want) {
		t.Errorf("got %+v for the dependency, want %+v", held, want)
	}
}

// Builds of xpkg dev have no order, and other prereleases are selected by name only: an update of all packages moves
// a package only to where an update of this package would, and to which Behind refers.
func TestUpdatesSelectReleases(t *testing.T) {
	const repository = "r.example/acme/boats"
	tags := []string{
		"v0.0.0-dev.x000000000000", "v0.0.0-dev.x111111111111", "v0.0.0-dev.xffffffffffff", "v0.9.0", "v1.0.0-rc.1",
		"v1.0.0-rc.2", "v1.0.0", "v1.1.0",
		"v1.2.0-rc.1", "2024.01.05", "latest",
	}
	for _, installed := range tags {
		for n := range len(tags) + 1 {
			available := tags[:n]
			if !slices.Contains(available, installed) {
				available = append(slices.Clone(available), installed)
			}
			f := lockfile.File{Packages: []lockfile.Package{{Repository: repository, Version: installed}}}
			row := compareVersions(&f, f.Packages[0], available)
			one := installed
			if len(row.accepted) > 0 {
				one = row.accepted[0]
			}
			root := notOlder(f, []dependency.Root{{Package: repository, Constraint: installed, Exact: true}}, nil)[0]
			all := installed
			if !root.Exact {
				c := version.ParseConstraint(root.Constraint)
				if !c.Accepts(installed) {
					t.Errorf("%s does not accept the installed %s", root.Constraint, installed)
				}
				all = c.Filter(available)[0]
			}
			if (all != one || row.Behind() != (one != installed)) && !root.Exact {
				t.Errorf("%s among %v: an update of all packages selects %s, that of this one %s", installed, available, all, one)
			}
		}
	}
	if Older(tags[0], tags[1]) || Older(tags[1], tags[0]) || !Older(tags[0], "v0.9.0") ||
		Older("2024.01.05", "v9999.0.0") {
		t.Error("tags without an order have one")
	}
}
