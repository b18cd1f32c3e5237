package catalog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/race"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// sized returns the facts of a version with that many kinds and dependencies.
func sized(tag string, kinds, dependencies int) Facts {
	f := Facts{Repository: repositoryName(1), Version: Version{Tag: tag, Digest: oci.DigestOf([]byte(tag))}, Head: &Head{}}
	f.Head.Package = Package{Repository: f.Repository, Type: "Provider"}
	for i := range kinds {
		name := fmt.Sprintf("k%d", i)
		f.Head.Kinds = append(f.Head.Kinds, Kind{
			Kind: name, Group: "example.org", Plural: name + "s", Singular: name, Role: Provides, Repository: f.Repository,
			Served: []string{"v1"},
		})
	}
	for i := range dependencies {
		f.Version.Dependencies = append(f.Version.Dependencies, dependency.Dependency{
			Package: fmt.Sprintf("example.org/%s%d", strings.Repeat("a", 200), i), Constraint: strings.Repeat(">=1 ", 120),
		})
	}
	f.normalize()
	return f
}

// tagged returns the facts of that many versions.
func tagged(n int, facts func(i int, tag string) Facts) []Facts {
	out := make([]Facts, n)
	for i := range out {
		out[i] = facts(i, fmt.Sprintf("v1.0.%d", i))
	}
	return out
}

// One publisher can state as much as a package may have, in as many versions as a registry accepts. Readers accept the
// index, which then contains the package or the reason for which it does not.
func TestAPackageThatIsTooLargeDoesNotDamageAnIndex(t *testing.T) {
	race.SkipSequential(t)
	innocent := sized("v1.0.0", 1, 0)
	innocent.Repository, innocent.Head.Package.Repository, innocent.Head.Kinds[0].Repository = repositoryName(0),
		repositoryName(0), repositoryName(0)
	for _, c := range []struct {
		name     string
		facts    []Facts
		excluded string
	}{
		{"versions", tagged(maxVersions+1, func(_ int, tag string) Facts { return sized(tag, 0, 0) }), "20001 versions"},
		{"versions up to the limit", tagged(maxVersions, func(_ int, tag string) Facts { return sized(tag, 0, 0) }), ""},
		{"dependencies", tagged(
			30, func(_ int, tag string) Facts { return sized(tag, 0, maxDependencies) },
		), "at most 8388608 are allowed"},
		{"a version", tagged(1, func(_ int, tag string) Facts {
			f := sized(tag, 0, maxDependencies)
			for i := range f.Version.Dependencies {
				f.Version.Dependencies[i].Constraint = strings.Repeat("\u2028", 512)
			}
			return f
		}), "a line is too long"},
		{"kinds", tagged(2*maxVersionKinds/maxKinds+1, func(i int, tag string) Facts {
			f := sized(tag, maxKinds/2, 0)
			if i > 5 {
				f.Head, f.Served = nil, nil // As the indexer does, which need not keep them.
			}
			return f
		}), fmt.Sprintf("more than %d kinds", maxVersionKinds)},
		{"different kinds", tagged(11, func(i int, tag string) Facts {
			f := sized(tag, maxKinds, 0)
			for j := range f.Head.Kinds {
				f.Head.Kinds[j].Group = fmt.Sprintf("g%d.example.org", i)
			}
			f.normalize()
			return f
		}), "at most 8388608 are allowed"},
		{"intervals", tagged(maxVersions, func(i int, tag string) Facts {
			f := sized(tag, 1, 0)
			for j := range i % 2 * (maxServed - 1) {
				f.Head.Kinds[0].Served = append(f.Head.Kinds[0].Served, fmt.Sprintf("v%d", j+2))
			}
			f.normalize()
			return f
		}), "at most 8388608 are allowed"},
		{"different kinds with short names", tagged(3, func(_ int, tag string) Facts { return sized(tag, maxKinds, 0) }), ""},
		{"texts", tagged(1, func(_ int, tag string) Facts {
			f := sized(tag, 0, 0)
			f.Head.Text = &Text{Repository: f.Repository, Kinds: []KindText{{
				Group: "example.org", Kind: "A", Fields: strings.Split(strings.Repeat("a ", maxLongLine/4), " "),
			}}}
			return f
		}), ""},
	} {
		b := blobs{}
		m := b.add(t, encode(t, numbered(build(t, append(c.facts, innocent)), 1)))
		if err := readEverything(m, b.fetch); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		row, reason := open(t, m, b).Package(repositoryName(1)), ""
		if row.Error != nil {
			reason = row.Error.Message
		}
		if !strings.Contains(reason, c.excluded) || (reason == "") != (c.excluded == "") {
			t.Errorf("%s: the package is excluded because of %q, want %q", c.name, reason, c.excluded)
		}
	}
}

// Content that repeats itself is small in a journal, but not for its readers.
func TestAJournalOfCompressibleChangesIsReadable(t *testing.T) {
	race.SkipSequential(t)
	b := blobs{}
	current := numbered(build(t, tagged(1, func(_ int, tag string) Facts { return sized(tag, 0, 0) })), 1)
	m := b.add(t, encode(t, current))
	for i := range 6 {
		next := numbered(build(t, tagged(9, func(_ int, tag string) Facts {
			f := sized(tag, 0, maxDependencies)
			f.Version.Created = time.Unix(int64(i+1), 0).UTC()
			return f
		})), int64(i+2))
		last, err := open(t, m, b).OpenJournal()
		if err != nil {
			t.Fatal(err)
		}
		image, extended, err := Append(&m, last, next.Config, Diff(&current, &next))
		if err != nil {
			t.Fatal(err)
		}
		if !extended {
			image = encode(t, next)
		}
		m, current = b.add(t, image), next
		if err := readEverything(m, b.fetch); err != nil {
			t.Fatal(err)
		}
	}
}

// A package that became too large while nothing read the registry does not keep its former content, as one whose
// repository cannot be listed does.
func TestAPackageThatBecameTooLargeIsNotKept(t *testing.T) {
	former := build(t, tagged(1, func(_ int, tag string) Facts { return sized(tag, 1, 0) }))
	next := build(t, tagged(maxVersions+1, func(_ int, tag string) Facts { return sized(tag, 0, 0) }))
	if unlisted := next.Unlisted(); len(unlisted) > 0 {
		t.Errorf("%q cannot be listed", unlisted)
	}
	kept := next.KeepUnlisted(&former)
	if e := kept.Packages[0].Error; e == nil || e.Code != ErrUnindexable.Name {
		t.Errorf("the package has the reason %+v", e)
	}
	for e := range next.ChangedEntries(&former) {
		packed, err := new(EntryEncoder).Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err := DecodeEntry(packed); err != nil || decoded.row.Error == nil {
			t.Errorf("the recorded entry: %+v, %v", decoded, err)
		}
		return
	}
	t.Error("the package is not recorded")
}
