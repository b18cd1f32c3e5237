package benchresult

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewResultsReplaceThoseOfTheSameGroupAndSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	old := []Row{{Group: "crds", Size: 100, What: "old"}, {Group: "crds", Size: 50, What: "kept"}, {
		Group: "solver", What: "kept",
	}}
	if err := Write(path, Replace(nil, old)); err != nil {
		t.Fatal(err)
	}
	have, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	got := Replace(have, []Row{{Group: "crds", Size: 100, What: "new"}, {Group: "crds", Size: 100, What: "new as well"}})
	want := []Row{
		{Group: "crds", Size: 50, What: "kept"}, {Group: "crds", Size: 100, What: "new"},
		{Group: "crds", Size: 100, What: "new as well"}, {Group: "solver", What: "kept"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissingFileHasNoResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	if rows, err := Read(path); err != nil || len(rows) != 0 {
		t.Errorf("got %v, %v", rows, err)
	}
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	if rows, err := Read(path); err != nil || len(rows) != 0 {
		t.Errorf("got %v, %v from an empty list", rows, err)
	}
}
