// Package clienttest creates registry clients for the tests of packages that use one.
package clienttest

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// New returns a client that retries without waiting and resolves no host names. Change may
// set further options.
func New(t *testing.T, change func(*remote.Options)) *remote.Client {
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

// FetchYAML resolves, fetches and reads the package at a reference.
func FetchYAML(
	ctx context.Context, r *remote.Client, store *store.Store, ref oci.Reference,
) ([]byte, oci.Manifest, error) {
	d, err := r.Resolve(ctx, ref)
	if err != nil {
		return nil, oci.Manifest{}, err
	}
	m, err := r.Fetch(ctx, ref.WithDigest(d.Digest), store, remote.FetchOptions{})
	if err != nil {
		return nil, oci.Manifest{}, err
	}
	data, err := store.PackageYAML(ctx, m, oci.Limits{})
	return data, m, err
}
