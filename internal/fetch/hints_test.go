package fetch_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// The required dependencies of a solution are hints for another process, until a later solution replaces them.
func TestSolutionsAreRemembered(t *testing.T) {
	store, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	open := func() *fetch.Source { return sourcetest.New(t, func(o *fetch.Options) { o.Store = store }) }
	const name = "registry.example.org/top"
	required := []dependency.Dependency{{Package: "registry.example.org/base", Constraint: ">=v1.0.0"}}
	for _, want := range [][]dependency.Dependency{
		nil, required, {{Package: "registry.example.org/other", Constraint: "*"}}, nil,
	} {
		all := append(slices.Clone(want), dependency.Dependency{Package: "registry.example.org/optional", Optional: true})
		writer := open()
		writer.Remember(t.Context(), []lockfile.Package{{Repository: name, Dependencies: all}})
		writer.Close()
		if got := open().Dependencies(t.Context(), name, "v9"); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
