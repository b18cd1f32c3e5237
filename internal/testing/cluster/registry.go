package cluster

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// Registry starts an OCI registry for one test and returns its address as host:port. It
// serves plain HTTP on the loopback interface, stores everything in memory, and allows
// deletes.
func Registry(t testing.TB) string {
	t.Helper()
	yes := true
	registry := olareg.New(config.Config{
		Storage: config.ConfigStorage{StoreType: config.StoreMem},
		API: config.ConfigAPI{
			DeleteEnabled: &yes,
			Blob:          config.ConfigAPIBlob{DeleteEnabled: &yes},
		},
	})
	server := httptest.NewServer(registry)
	t.Cleanup(func() {
		server.Close()
		if err := registry.Close(); err != nil {
			t.Errorf("registry: %v", err)
		}
	})
	return strings.TrimPrefix(server.URL, "http://")
}
