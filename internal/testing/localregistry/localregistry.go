// Package localregistry provides registries of a test in its own process.
package localregistry

import (
	"net/http"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// New returns a registry, with deletions and without access control, whose content is in a folder of the test.
func New(t testing.TB) http.Handler {
	t.Helper()
	store := storage.Open(t.TempDir(), storage.Options{Volatile: true})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("registry: %v", err)
		}
	})
	return &protocol.Handler{Store: store}
}
