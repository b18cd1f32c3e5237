package content

import (
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/testing/indexkey"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// recentIndexes returns the index of a new registry, which has none yet, and its reference.
func recentIndexes(t *testing.T) (*RecentIndexes, oci.Reference) {
	t.Helper()
	server := port.Serve(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	client := remote.New(remote.Options{Attempts: 1})
	t.Cleanup(client.Close)
	cache, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cache.Close() })
	location := strings.TrimPrefix(server.URL, "http://") + "/index:main"
	return &RecentIndexes{Client: &indexer.Client{Remote: client, Store: cache}, Locations: []string{location}},
		oci.MustParseReference(location)
}

// TestKeysAreReplacedWhileTheProcessRuns checks that a manager refuses indexes that its keys have not signed, and reads
// the keys again.
func TestKeysAreReplacedWhileTheProcessRuns(t *testing.T) {
	indexes, ref := recentIndexes(t)
	signer, key := indexkey.New(t)
	_, other := indexkey.New(t)
	image, _, err := (&indexer.Publishing{
		Catalog: catalog.Catalog{Config: catalog.Config{Name: "test"}}, Created: time.Unix(1, 0),
	}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := signer.Push(t.Context(), indexes.Client.Remote, ref, image.Manifest.Digest); err != nil {
		t.Fatal(err)
	}
	if err := indexer.Publish(t.Context(), indexes.Client.Remote, ref, &image, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "index.pub")
	indexes.Key = IndexKeyFlag{IndexKey: file}
	for _, step := range []struct {
		keys []byte
		want error
	}{{other, indexer.ErrIndexSignature}, {[]byte("none"), indexer.ErrIndexKey}, {append(other, key...), nil}} {
		if err := os.WriteFile(file, step.keys, 0o600); err != nil {
			t.Fatal(err)
		}
		sources, err := indexes.Sources(t.Context(), time.Minute)
		if (err == nil) != (step.want == nil) || step.want != nil && !errors.Is(err, step.want) ||
			(err == nil) != (len(sources) == 1) {
			t.Errorf("%d sources, %v; want %v", len(sources), err, step.want)
		}
	}
}

// A long-running process reads an index again when the state that it knows is older than the caller accepts.
func TestIndexesAreReadAgainWhenTheirStateIsTooOld(t *testing.T) {
	indexes, ref := recentIndexes(t)
	var former *catalog.Reader
	publish := func(sequence int64) {
		t.Helper()
		if sequence > 1 {
			var err error
			if former, err = indexes.Client.Open(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		state := indexer.Publishing{
			Catalog: catalog.Catalog{Config: catalog.Config{Name: "test"}}, Created: time.Unix(sequence, 0), Former: former,
		}
		if former != nil {
			all, err := former.Catalog()
			if err != nil {
				t.Fatal(err)
			}
			state.FormerCatalog = &all
		}
		image, _, err := state.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := indexer.Publish(t.Context(), indexes.Client.Remote, ref, &image, former); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(maxAge time.Duration, sequence int64) {
		t.Helper()
		sources, err := indexes.Sources(t.Context(), maxAge)
		if err != nil {
			t.Fatal(err)
		}
		if got := sources[0].(provide.Catalog).Config.Sequence; got != sequence {
			t.Errorf("the state %d, want %d", got, sequence)
		}
	}
	publish(1)
	expect(time.Hour, 1)
	publish(2)
	expect(time.Hour, 1)
	expect(0, 2)
	expect(time.Hour, 2)
}
