package registry_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
)

// TestDatabasesOfFormerPartitionsAreRemoved starts a server with a configuration that has a private part less.
func TestDatabasesOfFormerPartitionsAreRemoved(t *testing.T) {
	first := start(t, nil)
	first.mustPush(t, "acme/secret/boats:v1.0.0", "Boat")
	find := func(s *server) bool { return len(s.found(t, s.admin, "kind:Boat")) == 1 }
	first.waitUntil(t, "the private package is found", func() bool { return find(first) })
	first.stop()
	databases := func() int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(first.dir, "cache", "search-*.db"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
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
		s.waitUntil(t, fmt.Sprintf("the package is found with %d databases", step.want), func() bool { return find(s) && databases() == step.want })
		s.stop()
	}
}
