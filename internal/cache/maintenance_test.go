package cache

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

func blobPath(c *Cache, d oci.Digest) string {
	return filepath.Join(c.Store().Dir(), "blobs", d.Hex()[:2], d.Hex())
}

// layer returns the blob with the content of a package.
func layer(t *testing.T, c *Cache, root oci.Digest) oci.Digest {
	t.Helper()
	a, err := c.Store().Peek().Artifact(t.Context(), root, oci.Limits{})
	must(t, err)
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	must(t, err)
	return m.Base.Digest
}

// words summarizes the faults of a report.
func words(digests map[string]oci.Digest, faults []Fault) string {
	var all []string
	for _, f := range faults {
		text := f.What
		for name, d := range digests {
			text = strings.ReplaceAll(text, d.String(), name)
		}
		for _, of := range [][]string{f.Names, f.InUse} {
			text += " " + strings.Join(of, ",")
		}
		all = append(all, strings.TrimSpace(text))
	}
	return strings.Join(all, "; ")
}

func TestVerify(t *testing.T) {
	type setting struct {
		cache *Cache
		d     map[string]oci.Digest
	}
	index := func(s setting) store.DerivedKey { return store.DerivedKey{Digest: s.d["a"], Name: "index", Version: 3} }
	tests := map[string]struct {
		damage           func(t *testing.T, s setting)
		damaged, missing string
	}{
		"Sound": {damage: func(*testing.T, setting) {}},
		"Layer": {
			damage:  func(t *testing.T, s setting) { must(t, os.Truncate(blobPath(s.cache, s.d["A"]), 3)) },
			damaged: "A named",
		},
		"Manifest": {
			damage:  func(t *testing.T, s setting) { must(t, os.Truncate(blobPath(s.cache, s.d["a"]), 3)) },
			damaged: "a named",
		},
		"Derived": {
			damage: func(t *testing.T, s setting) {
				files, err := filepath.Glob(filepath.Join(s.cache.Store().Dir(), "derived", "*-index-3"))
				must(t, err)
				must(t, os.Truncate(files[0], 3))
			},
			damaged: "index of a named",
		},
		"Gone": {
			damage: func(t *testing.T, s setting) {
				must(t, os.Remove(blobPath(s.cache, s.d["A"])))
				must(t, os.Remove(blobPath(s.cache, s.d["B"])))
				must(t, os.Remove(blobPath(s.cache, s.d["C"])))
			},
			missing: "content A named; layer B  cluster",
		},
		"GoneWhole": {
			damage: func(t *testing.T, s setting) {
				must(t, os.Remove(blobPath(s.cache, s.d["a"])))
				must(t, os.Remove(blobPath(s.cache, s.d["b"])))
			},
			missing: "manifest a named",
		},
		"Record": {
			damage: func(t *testing.T, s setting) {
				must(t, s.cache.store.PutRecord(store.Record{Kind: usesKind, Name: "x", Data: []byte("?")}))
			},
			damaged: "a record of uses",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			c, d := filled(t, clock, 10, "b", "c")
			file := filepath.Join(t.TempDir(), "a.xpkg")
			d["a"] = writePackage(t, file, "a", 1000)
			_, err := c.Add(t.Context(), file, "named")
			must(t, err)
			must(t, c.Use("cluster", []oci.Digest{d["b"]}))
			d["A"], d["B"], d["C"] = layer(t, c, d["a"]), layer(t, c, d["b"]), layer(t, c, d["c"])
			s := setting{c, d}
			must(t, c.Store().PutDerived(t.Context(), index(s), []byte("value")))
			entries, err := c.Store().Entries(t.Context())
			must(t, err)
			tc.damage(t, s)
			r, err := c.Verify(t.Context())
			must(t, err)
			if got := words(d, r.Damaged); got != tc.damaged {
				t.Errorf("damaged: %s, want %s", got, tc.damaged)
			}
			missing := strings.Split(words(d, r.Missing), "; ")
			want := strings.Split(tc.missing, "; ")
			if diff := cmp.Diff(sorted(want), sorted(missing)); diff != "" {
				t.Error(diff)
			}
			// A package that lacks content is not listed as complete.
			listed, err := c.List(t.Context())
			must(t, err)
			for _, e := range listed {
				for _, f := range r.Missing {
					if slices.ContainsFunc(f.Names, func(name string) bool { return slices.Contains(e.Names, name) }) &&
						len(e.Missing) == 0 && e.Problem == "" {
						t.Errorf("%s lacks %s and is listed as complete", e.Digest, f.What)
					}
				}
			}
			// Verifying is no use.
			after, err := c.Store().Entries(t.Context())
			must(t, err)
			for _, e := range after {
				for _, before := range entries {
					if e.String() == before.String() && !e.LastUsed.Equal(before.LastUsed) {
						t.Errorf("%s was used at %s", e, e.LastUsed)
					}
				}
			}
			// Fetching and adding the package again repairs it.
			_, err = c.Add(t.Context(), file, "named")
			must(t, err)
			must(t, put(t.Context(), c, image(t, "b", 1000)))
			if r, err := c.Verify(t.Context()); err != nil || len(r.Damaged)+len(r.Missing) > 0 {
				t.Errorf("after a repair: %+v (%v)", r, err)
			}
		})
	}
}

func sorted(all []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range all {
		set[s] = true
	}
	return set
}

func TestPrune(t *testing.T) {
	tests := map[string]struct {
		o     PruneOptions
		want  string
		named bool
	}{
		"Nothing":        {PruneOptions{}, "abcde", true},
		"Older":          {PruneOptions{OlderThan: 100 * time.Minute}, "abde", true},
		"OlderThanMost":  {PruneOptions{OlderThan: time.Minute}, "abe", true},
		"Smaller":        {PruneOptions{MaxBytes: 1}, "abe", true},
		"All":            {PruneOptions{All: true}, "ae", false},
		"AllOlder":       {PruneOptions{All: true, OlderThan: 150 * time.Minute}, "acde", false},
		"AllButNotSo":    {PruneOptions{All: true, OlderThan: 1000 * time.Hour}, "abcde", true},
		"DryRun":         {PruneOptions{All: true, DryRun: true}, "abcde", true},
		"SmallerDryRun":  {PruneOptions{MaxBytes: 1, DryRun: true}, "abcde", true},
		"HardlySmaller":  {PruneOptions{MaxBytes: 1 << 40}, "abcde", true},
		"AllHardlySmall": {PruneOptions{MaxBytes: 1 << 40, All: true}, "abcde", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			c, d := filled(t, clock, 10, "a")
			must(t, c.Use("cluster", []oci.Digest{d["a"]}))
			file := filepath.Join(t.TempDir(), "b.xpkg")
			d["b"] = writePackage(t, file, "b", 1000)
			_, err := c.Add(t.Context(), file, "named")
			must(t, err)
			for _, name := range []string{"c", "d", "e"} {
				clock.advance(time.Hour)
				img := image(t, name, 1000)
				must(t, put(t.Context(), c, img))
				d[name] = img.Digest()
			}
			clock.advance(grace / 2) // e is in use still, d is 65 minutes old.
			before := diskSize(t, c)
			r, err := c.Prune(t.Context(), tc.o)
			must(t, err)
			if got := there(t, c, d); got != tc.want {
				t.Errorf("%s are left, want %s", got, tc.want)
			}
			if freed := before - diskSize(t, c); freed != r.Freed && !tc.o.DryRun {
				t.Errorf("freed %d bytes, and the report says %d", freed, r.Freed)
			}
			if tc.o.DryRun && (r.Freed == 0 || len(r.Removed) == 0) {
				t.Errorf("the report says %+v", r)
			}
			if _, err := c.Named(t.Context(), "named"); (err == nil) != tc.named {
				t.Errorf("the name: %v", err)
			}
		})
	}
}

// Prune without options removes entries that belong to no package and quarantined files.
func TestPruneRubbish(t *testing.T) {
	clock := newClock()
	c, d := filled(t, clock, 10, "a", "b")
	must(t, os.Remove(blobPath(c, d["a"])))
	must(t, os.Truncate(blobPath(c, layer(t, c, d["b"])), 10))
	if err := stream(t.Context(), c.Store().Peek(), d["b"]); !errors.Is(err, oci.ErrDigestMismatch) {
		t.Fatal(err)
	}
	clock.advance(time.Hour)
	r, err := c.Prune(t.Context(), PruneOptions{})
	must(t, err)
	info, err := os.Stat(blobPath(c, d["b"]))
	must(t, err)
	if n := diskSize(t, c); n != info.Size() || r.Freed == 0 {
		t.Errorf("%d bytes are left of %+v, and the manifest has %d", n, r, info.Size())
	}
}

func TestList(t *testing.T) {
	clock := newClock()
	c, d := filled(t, clock, 10, "a")
	must(t, c.Use("cluster", []oci.Digest{d["a"]}))
	d["b"] = writePackage(t, filepath.Join(c.Dir(), "dropped.xpkg"), "b", 1000)
	file := filepath.Join(t.TempDir(), "c.xpkg")
	d["c"] = writePackage(t, file, "c", 1000)
	must(t, os.WriteFile(filepath.Join(c.Dir(), "same.tar"), archive(t, image(t, "c", 1000)), 0o600))
	must(t, os.WriteFile(filepath.Join(c.Dir(), "packed.xpkg.gz"), gzipped(t, archive(t, image(t, "d", 10))), 0o600))
	must(t, os.WriteFile(filepath.Join(c.Dir(), "rubbish.xpkg"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(c.Dir(), "README"), nil, 0o600))
	_, err := c.Add(t.Context(), file, "one", "two")
	must(t, err)
	var want []Entry
	for range 2 { // The second time from what was written down.
		got, err := c.List(t.Context())
		must(t, err)
		for i := range got {
			got[i].LastUsed = got[i].LastUsed.UTC()
			if got[i].Problem != "" {
				got[i].Problem = "something"
			}
			if (got[i].Size > 0) != (i == 0 || i == 2) {
				t.Errorf("%+v has %d bytes", got[i], got[i].Size)
			}
			got[i].Size = 0
		}
		start := newClock().now
		want = []Entry{
			{Digest: d["a"], Kind: "Configuration", Package: "a", LastUsed: start, InUse: []string{"cluster"}, Users: []string{
				"cluster",
			}},
			{Digest: d["b"], Kind: "Configuration", Package: "b", Files: []string{"dropped.xpkg"}, LastUsed: time.Time{}},
			{Digest: d["c"], Kind: "Configuration", Package: "c", Names: []string{
				"one", "two",
			}, Files: []string{"same.tar"}, LastUsed: start.Add(time.Hour)},
			{Files: []string{"packed.xpkg.gz"}},
			{Files: []string{"rubbish.xpkg"}, Problem: "something"},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(oci.Digest{})); diff != "" {
			t.Error(diff)
		}
	}
	if has, limit, err := c.Size(t.Context()); err != nil || limit != c.limit || has != diskSize(t, c) {
		t.Errorf("it has %d of %d bytes (%v), and %d on the disk", has, limit, err, diskSize(t, c))
	}
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return s != "" })
	return texts[i]
}

// Content that was read in part, and artifacts that are no packages, are neither damaged nor unreadable.
func TestPartsAndOtherArtifactsAreSound(t *testing.T) {
	clock := newClock()
	c, d := filled(t, clock, 10, "complete", "partial", "named")
	file := filepath.Join(t.TempDir(), "named.xpkg")
	writePackage(t, file, "named", 1000)
	_, err := c.Add(t.Context(), file, "named")
	must(t, err)
	for _, name := range []string{"partial", "named"} {
		must(t, os.Remove(blobPath(c, layer(t, c, d[name]))))
	}
	config, err := c.store.PutBytes(t.Context(), []byte("{}"))
	must(t, err)
	_, err = c.store.PutBytes(t.Context(), fmt.Appendf(nil,
		`{"schemaVersion":2,"mediaType":%q,"artifactType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[]}`,
		"application/vnd.oci.image.manifest.v1+json", catalog.ArtifactType, catalog.MediaTypeConfig, config))
	must(t, err)
	entries, err := c.List(t.Context())
	must(t, err)
	got := map[string]Entry{}
	for _, e := range entries {
		got[firstOf(e.Package, e.Type, "partial")] = e
	}
	if e := got["partial"]; !e.Partial || e.Problem != "" || len(e.Missing) > 0 || e.Digest != d["partial"] {
		t.Errorf("a package of which only parts were read: %+v", e)
	}
	if e := got["named"]; e.Partial || len(e.Missing) == 0 {
		t.Errorf("a named package without its content: %+v", e)
	}
	if e := got[catalog.ArtifactType]; e.Problem != "" || e.Partial {
		t.Errorf("an index: %+v", e)
	}
	r, err := c.Verify(t.Context())
	must(t, err)
	if len(r.Damaged)+len(r.Unreadable) > 0 || len(r.Missing) != 1 {
		t.Errorf("got %+v", r)
	}
	clock.advance(time.Hour)
	r, err = c.Prune(t.Context(), PruneOptions{All: true, DryRun: true})
	must(t, err)
	kinds := map[string]bool{}
	for _, e := range r.Removed {
		kinds[firstOf(e.Package, e.Type, fmt.Sprint(e.Partial))] = true
	}
	if want := map[string]bool{
		"complete": true, "named": true, catalog.ArtifactType: true, "true": true,
	}; !maps.Equal(want, kinds) {
		t.Errorf("a prune would remove %v, want %v", kinds, want)
	}
}

// A list names the control planes that use a package, and either name forgets one.
func TestUsersHaveNames(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{User: "/data/default"})
	img := image(t, "a", 1000)
	must(t, put(t.Context(), c, img))
	roots := []oci.Digest{img.Digest()}
	must(t, c.Use("one", roots))
	must(t, open(t, dir, Options{}).Use("two", roots))
	users := func() []string {
		t.Helper()
		all, err := c.List(t.Context())
		must(t, err)
		return all[0].Users
	}
	if diff := cmp.Diff([]string{"/data/default", "two"}, users()); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	if unknown, err := c.Forget(t.Context(), "two", "typo"); err != nil || !slices.Equal(unknown, []string{"typo"}) {
		t.Fatalf("the unknown owners are %v, %v", unknown, err)
	}
	if unknown, err := c.Forget(t.Context(), "/data/default", "two"); err != nil || len(unknown) > 0 {
		t.Fatalf("the unknown owners are %v, %v", unknown, err)
	}
	if got := users(); len(got) > 0 {
		t.Errorf("%q are not forgotten", got)
	}
}
