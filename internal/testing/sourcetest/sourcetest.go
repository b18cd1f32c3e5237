// Package sourcetest opens sources of package content for tests.
package sourcetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// New returns a source with its own store, which does not wait between attempts. Change changes its
// options, and may be nil.
func New(t testing.TB, change func(*fetch.Options)) *fetch.Source {
	t.Helper()
	store, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := fetch.Options{Store: store}
	o.Remote.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if change != nil {
		change(&o)
	}
	source := fetch.NewSource(o)
	t.Cleanup(func() {
		source.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return source
}
