package search_test

import (
	"os"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/search"
)

// TestAFileThatCannotBeOpenedIsKept replaces a database only if it was read.
func TestAFileThatCannotBeOpenedIsKept(t *testing.T) {
	path := t.TempDir()
	if d, err := search.Open(t.Context(), path); err == nil {
		t.Fatal(d.Close())
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}
