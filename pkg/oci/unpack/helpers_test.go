package unpack

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// testRemote is a client that does not wait and whose names all lie in a table.
func testRemote(t *testing.T, change func(*remote.Options)) *remote.Client {
	t.Helper()
	opts := remote.Options{
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Jitter: func() float64 { return 0 },
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, fmt.Errorf("the test has no host %s", host)
		},
	}
	if change != nil {
		change(&opts)
	}
	r := remote.New(opts)
	t.Cleanup(r.Close)
	return r
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func layersOf(t *testing.T, img *image.Image) []oci.Descriptor {
	t.Helper()
	m, err := img.Manifest()
	ocitest.Must(t, err)
	return m.Layers
}
