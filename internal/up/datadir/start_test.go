package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The flags of the last start are known until the next one. A directory without them, or with a damaged file, has none.
func TestLastFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plane")
	dir, err := Open(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	check := func(want ...string) {
		t.Helper()
		if got := LastFlags(path); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check()
	flags := []string{"--package-runtime=Provider=Process;Function=None", "--namespaced"}
	if err := dir.SaveFlags(flags); err != nil {
		t.Fatal(err)
	}
	check(flags...)
	if err := os.WriteFile(dir.File(flagsName), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	check()
	if err := dir.SaveFlags(nil); err != nil {
		t.Fatal(err)
	}
	check()
}
