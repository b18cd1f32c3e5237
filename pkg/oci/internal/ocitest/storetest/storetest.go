// Package storetest opens content stores for the tests of packages that use one.
package storetest

import (
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// New opens a store in a temporary directory.
func New(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
