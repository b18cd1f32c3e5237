package content

import (
	"fmt"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// An index that was fetched before predicts dependencies without a request, unless the package was resolved before.
func TestAnIndexPredictsDependenciesWithoutARequest(t *testing.T) {
	indexes, ref := recentIndexes(t)
	const top, base = "registry.example.org/top", "registry.example.org/base"
	needs := []dependency.Dependency{{Package: base, Constraint: ">=v1.0.0"}}
	published := catalog.Catalog{
		Config:   catalog.Config{Name: "test", Counts: catalog.Counts{Packages: 1, Versions: 1}},
		Packages: []catalog.Package{{Repository: top, Type: "Configuration", Latest: "v1.0.0"}},
		Histories: []catalog.History{{Repository: top, Versions: []catalog.Version{
			{Tag: "v1.0.0", Digest: oci.DigestOf([]byte("v1.0.0")), Created: time.Unix(1, 0), Dependencies: needs},
		}}},
	}
	image, _, err := (&indexer.Publishing{Catalog: published, Created: time.Unix(1, 0)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := indexer.Publish(t.Context(), indexes.Client.Remote, ref, &image, nil); err != nil {
		t.Fatal(err)
	}
	source := &LazySource{Indexes: KindIndexFlag{Index: indexes.Locations}}
	source.Flags.CacheDir = t.TempDir()
	t.Cleanup(func() { _ = source.Close() })
	if got := source.Dependencies(t.Context(), top, "*"); got != nil {
		t.Errorf("got %v from an index that was not fetched", got)
	}
	if _, err := source.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := source.openIndexes(t.Context(), source.Indexes, false); err != nil {
		t.Fatal(err)
	}
	later := &LazySource{Indexes: source.Indexes, Flags: source.Flags}
	t.Cleanup(func() { _ = later.Close() })
	if got := later.Dependencies(t.Context(), top, "*"); fmt.Sprint(got) != fmt.Sprint(needs) {
		t.Errorf("got %v, want %v", got, needs)
	}
	resolved := []dependency.Dependency{{Package: base, Constraint: "v9.0.0"}}
	later.Remember(t.Context(), []lockfile.Package{{Repository: top, Dependencies: resolved}})
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
	again := &LazySource{Indexes: source.Indexes, Flags: source.Flags}
	t.Cleanup(func() { _ = again.Close() })
	if got := again.Dependencies(t.Context(), top, "*"); fmt.Sprint(got) != fmt.Sprint(resolved) {
		t.Errorf("got %v, want %v", got, resolved)
	}
}
