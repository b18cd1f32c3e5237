package sandbox

import (
	"path/filepath"
	"testing"
)

// A runtime starts in a folder of its own, where a relative path leads elsewhere.
func TestRootsHaveAbsolutePaths(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	r, err := NewRoots(RootsOptions{Dir: "images"})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(work, "images"); r.opts.Dir != want {
		t.Errorf("roots are in %s, want %s", r.opts.Dir, want)
	}
}
