package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestErrorsOfContentNameItsDigestOnly reads content that does not exist: the error names no tag, which the caller did not ask for.
func TestErrorsOfContentNameItsDigestOnly(t *testing.T) {
	packages := registry.NewPackages(host, t.TempDir(), http.NotFoundHandler())
	defer func() {
		if err := packages.Close(); err != nil {
			t.Error(err)
		}
	}()
	absent := oci.DigestOf([]byte("absent"))
	if _, err := packages.Read(t.Context(), "acme/boats", absent); err == nil || strings.Contains(err.Error(), "latest") || !strings.Contains(err.Error(), absent.String()) {
		t.Error(err)
	}
}
