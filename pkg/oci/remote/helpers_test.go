package remote

import (
	"context"
	"fmt"

	"net/netip"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// testRemote returns a client that does not wait and whose names all lie in a table.
func testRemote(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	opts := Options{
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Jitter: func() float64 { return 0 },
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, fmt.Errorf("the test has no host %s", host)
		},
	}
	if change != nil {
		change(&opts)
	}
	r := New(opts)
	t.Cleanup(r.Close)
	return r
}

// fetchYAML resolves, fetches and reads the package at a reference.
func fetchYAML(ctx context.Context, r *Client, store *store.Store, ref oci.Reference) ([]byte, oci.Manifest, error) {
	d, err := r.Resolve(ctx, ref)
	if err != nil {
		return nil, oci.Manifest{}, err
	}
	m, err := r.Fetch(ctx, ref.WithDigest(d.Digest), store, FetchOptions{})
	if err != nil {
		return nil, oci.Manifest{}, err
	}
	data, err := store.PackageYAML(ctx, m, oci.Limits{})
	return data, m, err
}

// read resolves, fetches and reads a package, and returns only the error.
func read(t *testing.T, r *Client, ref oci.Reference) error {
	t.Helper()
	_, _, err := fetchYAML(t.Context(), r, storetest.New(t), ref)
	return err
}
