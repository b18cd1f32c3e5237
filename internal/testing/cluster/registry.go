package cluster

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
)

// Registry starts an OCI registry for one test and returns its address as host:port. It
// serves plain HTTP on the loopback interface, stores everything in a folder of the
// test, and allows deletes.
func Registry(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(localregistry.New(t))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
