package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
)

// TestRecordsOfFormerPartitionsAreRemoved starts a server with a configuration that has a private part less. The
// files that servers had before records are removed, too.
func TestRecordsOfFormerPartitionsAreRemoved(t *testing.T) {
	first := start(t, nil)
	first.mustPush(t, "acme/secret/boats:v1.0.0", "Boat")
	find := func(s *server) bool { return len(s.found(t, s.admin, "kind:Boat")) == 1 }
	first.waitUntil(t, "the private package is found", func() bool { return find(first) })
	first.stop()
	cache := filepath.Join(first.dir, "cache")
	number := func(pattern string) int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for _, name := range []string{"search-0123456789abcdef.db", "search-0123456789abcdef.db-wal"} {
		if err := os.WriteFile(filepath.Join(cache, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		policy string
		want   int
	}{{policy, 2}, {"{}", 1}, {policy, 2}} {
		s := start(t, func(o *registry.Options) {
			o.Dir = first.dir
			configured(t, step.policy)(o)
		})
		s.admin = first.admin
		s.waitUntil(t, fmt.Sprintf("the package is found with %d records", step.want), func() bool {
			return find(s) && number("record-*") == step.want && number("search-*") == 0
		})
		s.stop()
	}
}
