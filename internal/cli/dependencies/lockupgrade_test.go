package dependencies

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

func lockedAt(repository, version string, deps ...dependency.Dependency) lockfile.Package {
	return lockfile.Package{
		Repository: repository, Version: version, Digest: oci.DigestOf([]byte(repository + version)), Dependencies: deps,
	}
}

// tagsOf returns the tags of a repository that were not selected.
func tagsOf(repository string, tags ...solver.SetAside) versions.SetAsideOf {
	return func(of string) iter.Seq[solver.SetAside] {
		if of != repository {
			return slices.Values([]solver.SetAside(nil))
		}
		return slices.Values(tags)
	}
}

// An upgrade refuses to lock an older version, and names the reason.
//
// hardening: F4
func TestUpgradeRefusesDowngrades(t *testing.T) {
	before := lockfile.File{Packages: []lockfile.Package{lockedAt("registry.example.com/net", "v2.0.0")}}
	after := lockfile.File{Packages: []lockfile.Package{lockedAt("registry.example.com/net", "v1.9.0")}}
	c := ResolveCmd{Lock: "xpkg.lock", Upgrade: true}
	err := c.checkDowngrades(before, after, tagsOf("registry.example.com/net"))
	if !errors.Is(err, ErrLockDowngrade) ||
		!strings.Contains(err.Error(), "net would move from v2.0.0 to v1.9.0: the registry no longer lists v2.0.0") {
		t.Errorf("got %v", err)
	}
	refused := tagsOf("registry.example.com/net", solver.SetAside{Tag: "v2.0.0", Reason: "app v1.0.0 requires <v2"})
	if err := c.checkDowngrades(before, after, refused); err == nil ||
		!strings.Contains(err.Error(), "app v1.0.0 requires <v2") {
		t.Errorf("got %v", err)
	}
	c.AllowDowngrade = true
	if err := c.checkDowngrades(before, after, refused); err != nil {
		t.Error(err)
	}
}

// An upgrade of a package that keeps its version names the packages that hold it back, and
// the command that moves both.
func TestUpgradeNamesHolders(t *testing.T) {
	f := lockfile.File{
		Roots: []dependency.Root{{Package: "registry.example.com/app", Constraint: ">=v1"}},
		Packages: []lockfile.Package{
			lockedAt("registry.example.com/app", "v1.0.0", dependency.Dependency{
				Package: "registry.example.com/net", Constraint: "<v2",
			}),
			lockedAt("registry.example.com/net", "v1.9.0"),
		},
	}
	c := ResolveCmd{Lock: "xpkg.lock", UpgradePackage: []string{"net"}}
	got := c.heldBack(f, f, tagsOf("registry.example.com/net", solver.SetAside{Tag: "v2.1.0"}, solver.SetAside{
		Tag: "v2.0.0",
	}))
	want := "registry.example.com/net stays at v1.9.0 although v2.1.0 is available: registry.example.com/app requires <v2; " +
		"to upgrade them together, run xpkg resolve --lock xpkg.lock --upgrade-package net --upgrade-package registry.example.com/app"
	if len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := c.heldBack(f, f, tagsOf("registry.example.com/net")); got != nil {
		t.Errorf("without a newer version: got %q", got)
	}
}
