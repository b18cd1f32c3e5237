package registry

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/largecatalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// recordedVersion returns the facts of a version whose author states a time.
func recordedVersion(name, tag string, created time.Time) catalog.Facts {
	f := largecatalog.Facts(name, "Provider", "Boat."+name+".example.org")
	f.Version.Tag, f.Version.Created = tag, created
	return f
}

// next reads the record in a folder, and returns the record after a change of the catalog.
func next(t *testing.T, dir string, isPrivate bool, now time.Time, facts ...catalog.Facts) *record {
	t.Helper()
	c, err := catalog.Build(catalog.Config{Name: "test"}, facts)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.write(&c, &catalog.Catalog{}, isPrivate, now); err != nil {
		t.Fatal(err)
	}
	read, err := readRecord(dir)
	equal := func(a, b map[string]time.Time) bool { return maps.EqualFunc(a, b, time.Time.Equal) }
	if err != nil || !read.hasBegun || !maps.EqualFunc(read.published, r.published, equal) {
		t.Errorf("the files have the times %v, %v, want %v", read.published, err, r.published)
	}
	return read
}

func (r *record) check(t *testing.T, repository string, want map[string]time.Time) {
	t.Helper()
	if got := r.published[repository]; !maps.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%s: the times are %v, want %v", repository, got, want)
	}
}

// The times of a new record are those that authors state, unless they are in the future. Later versions have the
// times at which they were recorded.
func TestRecordedTimes(t *testing.T) {
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	dir := filepath.Join(t.TempDir(), "record")
	old := recordedVersion("provider-old", "v1.0.0", day.AddDate(-3, 0, 0))
	future := recordedVersion("provider-future", "v1.0.0", day.AddDate(50, 0, 0))
	r := next(t, dir, false, day, old, future)
	r.check(t, old.Repository, map[string]time.Time{"v1.0.0": day.AddDate(-3, 0, 0)})
	r.check(t, future.Repository, map[string]time.Time{"v1.0.0": day})
	later := day.AddDate(0, 1, 0)
	all := []catalog.Facts{
		old, future, recordedVersion("provider-old", "v0.9.0", time.Time{}),
		recordedVersion("provider-old", "v1.1.0", day.AddDate(-9, 0, 0)),
	}
	want := map[string]time.Time{"v1.0.0": day.AddDate(-3, 0, 0), "v0.9.0": later, "v1.1.0": later}
	for _, now := range []time.Time{later, later.AddDate(1, 0, 0)} {
		next(t, dir, false, now, all...).check(t, old.Repository, want)
	}
	r = next(t, dir, false, later.AddDate(1, 0, 0), future)
	r.check(t, old.Repository, nil)
	r.check(t, future.Repository, map[string]time.Time{"v1.0.0": day})
}

// TestDamagedFilesOfARecordCountAsMissing damages each file of a record in turn: the next update writes it again.
func TestDamagedFilesOfARecordCountAsMissing(t *testing.T) {
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	facts := []catalog.Facts{
		recordedVersion("provider-boats", "v1.0.0", day), recordedVersion("provider-cars", "v1.0.0", day),
	}
	repositories := []string{facts[0].Repository, facts[1].Repository}
	dir := t.TempDir()
	next(t, dir, true, day, facts...)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 5 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	for _, file := range files {
		// It can be the same kind of file of the other package.
		other := files[(slices.Index(files, file)+2)%len(files)].Name()
		copied, err := os.ReadFile(filepath.Join(dir, other))
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range [][]byte{nil, []byte("{"), copied} {
			if err := os.WriteFile(filepath.Join(dir, file.Name()), content, 0o600); err != nil {
				t.Fatal(err)
			}
			damaged, err := readRecord(dir)
			if err != nil {
				t.Fatalf("%s: %v", file.Name(), err)
			}
			if entries, err := damaged.entries(repositories); err != nil ||
				len(entries) != 2 && filepath.Ext(file.Name()) != entrySuffix {
				t.Errorf("%s: %d entries, %v", file.Name(), len(entries), err)
			}
			r := next(t, dir, true, day, facts...)
			for _, repository := range repositories {
				r.check(t, repository, map[string]time.Time{"v1.0.0": day})
			}
			if entries, err := r.entries(repositories); err != nil || len(entries) != 2 {
				t.Errorf("%s: %d entries after an update, %v", file.Name(), len(entries), err)
			}
		}
	}
	next(t, dir, true, day, facts[0])
	next(t, dir, false, day, facts[0]) // Its entries leave, too.
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("after a package is gone, the files are %v, %v", files, err)
	}
}
