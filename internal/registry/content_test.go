package registry_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// TestErrorsOfContentNameItsDigestOnly reads a package that is not valid: the error names no tag, for which the caller
// did not ask.
func TestErrorsOfContentNameItsDigestOnly(t *testing.T) {
	images := localregistry.New(t)
	address := strings.TrimPrefix(port.Serve(t, images).URL, "http://")
	d, err := publish.Package(t.Context(), address+"/acme/boats:v1.0.0", []byte("kind: Boat\nmetadata: {name: [}\n"))
	if err != nil {
		t.Fatal(err)
	}
	packages := registry.NewPackages(host, t.TempDir(), images)
	defer func() {
		if err := packages.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := packages.Read(t.Context(), "acme/boats", d); err == nil || strings.Contains(err.Error(), "latest") ||
		!strings.Contains(err.Error(), "acme/boats@"+d.String()) {
		t.Error(err)
	}
}
