package retention_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/retention"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

const boats, rafts = "registry.example.org/acme/boats", "registry.example.org/acme/rafts"

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// facts returns the facts of a version that is some days old; a negative age means that the image states no time.
func facts(repository, tag string, days int, constraint string) catalog.Facts {
	f := catalog.Facts{
		Repository: repository,
		Version:    catalog.Version{Tag: tag, Digest: oci.DigestOf([]byte(repository + tag))},
		Head:       &catalog.Head{Package: catalog.Package{Repository: repository, Type: "Provider"}},
	}
	if days >= 0 {
		f.Version.Created = now.Add(-time.Duration(days) * 24 * time.Hour)
	}
	if constraint != "" {
		f.Version.Dependencies = []dependency.Dependency{{Package: boats, Constraint: constraint}}
	}
	return f
}

func build(t interface{ Fatal(...any) }, all ...catalog.Facts) *catalog.Catalog {
	c, err := catalog.Build(catalog.Config{Name: "test"}, all)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func selected(c *catalog.Catalog, r retention.Rules) string {
	var tags []string
	candidates, _ := retention.Select(c, r, nil)
	for _, v := range candidates {
		tags = append(tags, v.Tag)
	}
	return strings.Join(tags, " ")
}

func TestOnlyOldPrereleasesThatNothingNeedsAreSelected(t *testing.T) {
	all := func(constraint string) []catalog.Facts {
		return []catalog.Facts{
			facts(boats, "main", 500, ""), facts(boats, "v1.0.0-rc.1", 400, ""), facts(boats, "v1.0.0-rc.2", 390, ""),
			facts(boats, "v1.0.0", 380, ""),
			facts(boats, "v2.0.0-rc.1", 300, ""), facts(boats, "v2.0.0-rc.2", 10, ""), facts(boats, "v2.0.0-rc.3", -1, ""),
			facts(rafts, "v1.0.0", 1, constraint),
		}
	}
	old := retention.Rules{Age: 90 * 24 * time.Hour, Now: now}
	for name, c := range map[string]struct {
		constraint string
		rules      func(*retention.Rules)
		change     func([]catalog.Facts)
		want       string
	}{
		"no constraint":   {"", nil, nil, "v1.0.0-rc.1 v1.0.0-rc.2 v2.0.0-rc.1"},
		"the newest ones": {"", func(r *retention.Rules) { r.Keep = 4 }, nil, "v1.0.0-rc.1"},
		"without a time": {
			"", func(r *retention.Rules) { r.Undated = true }, nil, "v1.0.0-rc.1 v1.0.0-rc.2 v2.0.0-rc.1 v2.0.0-rc.3",
		},
		"a longer age": {
			"", func(r *retention.Rules) { r.Age = 350 * 24 * time.Hour }, nil, "v1.0.0-rc.1 v1.0.0-rc.2",
		},
		"a pinned version":                  {"v1.0.0-rc.1", nil, nil, "v1.0.0-rc.2 v2.0.0-rc.1"},
		"a pinned version with an operator": {"=v1.0.0-rc.1", nil, nil, "v1.0.0-rc.2 v2.0.0-rc.1"},
		"a pinned digest": {
			oci.DigestOf([]byte(boats + "v2.0.0-rc.1")).String(), nil, nil, "v1.0.0-rc.1 v1.0.0-rc.2",
		},
		"only prereleases satisfy it": {">=v1.0.0-0 <v1.0.0", nil, nil, "v1.0.0-rc.1 v2.0.0-rc.1"},
		"a release satisfies it":      {">=v1.0.0-0", nil, nil, "v1.0.0-rc.1 v1.0.0-rc.2 v2.0.0-rc.1"},
		"a lock file by digest": {"", func(r *retention.Rules) {
			r.Locks = []lockfile.File{{Packages: []lockfile.Package{{
				Repository: "mirror.test/boats", Digest: oci.DigestOf([]byte(boats + "v1.0.0-rc.2")),
			}}}}
		}, nil, "v1.0.0-rc.1 v2.0.0-rc.1"},
		"a lock file by version": {"", func(r *retention.Rules) {
			r.Locks = []lockfile.File{{Packages: []lockfile.Package{{Repository: boats, Version: "v1.0.0-rc.1"}}}}
		}, nil, "v1.0.0-rc.2 v2.0.0-rc.1"},
		"a promoted prerelease": {
			"", nil, func(f []catalog.Facts) { f[3].Version.Digest = f[2].Version.Digest }, "v1.0.0-rc.1 v2.0.0-rc.1",
		},
		"deleted already": {"", nil, func(f []catalog.Facts) {
			f[1].Version.Status = &catalog.Status{State: catalog.Removed}
		}, "v1.0.0-rc.2 v2.0.0-rc.1"},
		"a yanked release does not satisfy": {"<=v1.0.0", nil, func(f []catalog.Facts) {
			f[3].Version.Status = &catalog.Status{State: catalog.Yanked}
		}, "v1.0.0-rc.1 v1.0.0-rc.2 v2.0.0-rc.1"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, of := old, all(c.constraint)
			if c.rules != nil {
				c.rules(&rules)
			}
			if c.change != nil {
				c.change(of)
			}
			if got := selected(build(t, of...), rules); got != c.want {
				t.Errorf("selected %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheRulesApplyToInterruptedDeletions checks versions that exist although their status states that the retention
// has deleted them.
func TestTheRulesApplyToInterruptedDeletions(t *testing.T) {
	for name, c := range map[string]struct {
		constraint     string
		rules          retention.Rules
		promoted       bool
		selected, kept string
	}{
		"nothing needs it": {selected: "v1.0.0-rc.1 v1.0.0-rc.2"},
		"a lock file": {rules: retention.Rules{Locks: []lockfile.File{{Packages: []lockfile.Package{{
			Repository: boats, Version: "v1.0.0-rc.1",
		}}}}}, selected: "v1.0.0-rc.2", kept: "a lock file contains it"},
		"a constraint": {
			constraint: "=v1.0.0-rc.1", selected: "v1.0.0-rc.2", kept: `a package in the index requires "=v1.0.0-rc.1"`,
		},
		"another version satisfies it": {constraint: ">=v1.0.0-0", selected: "v1.0.0-rc.1 v1.0.0-rc.2"},
		"the newest ones": {
			rules: retention.Rules{Keep: 2}, kept: "it is one of the newest 2 prereleases (--keep)",
		},
		"a promoted prerelease": {promoted: true, selected: "v1.0.0-rc.2", kept: "v1.0.0 has the same content"},
	} {
		t.Run(name, func(t *testing.T) {
			all := []catalog.Facts{
				facts(boats, "v1.0.0-rc.1", -1, ""), facts(boats, "v1.0.0-rc.2", 390, ""), facts(boats, "v1.0.0", 380, ""),
				facts(rafts, "v1.0.0", 1, c.constraint),
			}
			all[0].Version.Status, all[0].Head = &catalog.Status{State: catalog.Removed}, nil
			if c.promoted {
				all[2].Version.Digest = all[0].Version.Digest
			}
			c.rules.Now, c.rules.Age = now, 90*24*time.Hour
			unfinished := []retention.Candidate{{Repository: boats, Version: all[0].Version}}
			candidates, kept := retention.Select(build(t, all...), c.rules, unfinished)
			var tags []string
			for _, v := range candidates {
				tags = append(tags, v.Tag)
			}
			if got := strings.Join(tags, " "); got != c.selected {
				t.Errorf("selected %q, want %q", got, c.selected)
			}
			if len(kept) > 1 || (len(kept) == 1) != (c.kept != "") ||
				len(kept) == 1 && (kept[0].Tag != "v1.0.0-rc.1" || string(kept[0].Why) != c.kept) {
				t.Errorf("kept %+v, want %q", kept, c.kept)
			}
		})
	}
}

// TestAPackageOfPrereleasesKeepsItsNewest checks a package without any release.
func TestAPackageOfPrereleasesKeepsItsNewest(t *testing.T) {
	c := build(t, facts(boats, "v0.1.0-rc.1", 400, ""), facts(boats, "v0.1.0-rc.2", 390, ""))
	if got := selected(c, retention.Rules{Now: now}); got != "v0.1.0-rc.1" {
		t.Errorf("selected %q", got)
	}
}

// TestEveryConstraintStaysSatisfied checks that each constraint that a version satisfies is satisfied afterwards, and
// that no release is selected.
func TestEveryConstraintStaysSatisfied(t *testing.T) {
	constraints := []string{
		"*", ">=v1.0.0-0", "<v1.0.0", "v1.0.0-rc.1", "=v1.1.0-rc.0", ">=v1.0.0-rc.1 <v1.0.0", "~v1.1.0-0", "<=v1.0.0-rc.1",
	}
	rapid.Check(t, func(t *rapid.T) {
		var all []catalog.Facts
		var tags []string
		for minor := range 3 {
			for candidate := range 3 {
				if rapid.Bool().Draw(t, "prerelease") {
					tags = append(tags, fmt.Sprintf("v1.%d.0-rc.%d", minor, candidate))
				}
			}
			if rapid.Bool().Draw(t, "release") {
				tags = append(tags, fmt.Sprintf("v1.%d.0", minor))
			}
		}
		if len(tags) == 0 {
			return
		}
		for _, tag := range tags {
			all = append(all, facts(boats, tag, rapid.IntRange(-1, 200).Draw(t, "days"), ""))
		}
		constraint := rapid.SampledFrom(constraints).Draw(t, "constraint")
		all = append(all, facts(rafts, "v1.0.0", 1, constraint))
		rules := retention.Rules{
			Age: 100 * 24 * time.Hour, Now: now, Keep: rapid.IntRange(0, 3).Draw(t, "keep"),
			Undated: rapid.Bool().Draw(t, "undated"),
		}
		var gone []string
		candidates, _ := retention.Select(build(t, all...), rules, nil)
		for _, v := range candidates {
			if !strings.Contains(v.Tag, "-") {
				t.Fatalf("the release %s is selected", v.Tag)
			}
			gone = append(gone, v.Tag)
		}
		c := version.ParseConstraint(constraint)
		satisfied := func(tags []string) bool { return slices.ContainsFunc(tags, c.Accepts) }
		left := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return slices.Contains(gone, tag) })
		if satisfied(tags) && !satisfied(left) || len(left) == 0 {
			t.Fatalf("%s is not satisfied by %q any more; %q were selected", constraint, left, gone)
		}
	})
}
