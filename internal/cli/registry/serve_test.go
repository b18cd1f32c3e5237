package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/command"
)

// TestServeRefusesRepositoriesThatTheBackendCannotHave checks mistakes in the flags of a backend, which would leave
// packages out of the index.
func TestServeRefusesRepositoriesThatTheBackendCannotHave(t *testing.T) {
	backend := []string{"--backend", "registry.example.org"}
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{slices.Concat(backend, []string{
			"--repository", "registry.example.org/acme/boats",
		}), "is not a repository of the backend"},
		{slices.Concat(backend, []string{"--repository", "acme/boats:v1"}), "is not a repository of the backend"},
		{slices.Concat(backend, []string{"--repository", "Acme/boats"}), "is not a repository of the backend"},
		{[]string{"--repository", "acme/boats"}, "need --backend"},
		{[]string{"--publish-index"}, "need --backend"},
		{[]string{"--backend", ""}, "--backend is empty"},
		{[]string{"--backend=", "--publish-index"}, "An unset shell variable is empty."},
		{[]string{"--listen", ""}, "--listen is empty"},
	} {
		code, _, stderr := command.Output(
			t, append([]string{"registry", "serve", "--dir", t.TempDir(), "--listen", "127.0.0.1:0"}, test.flags...)...,
		)
		if code != 3 || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: exit code %d\n%s", test.flags, code, stderr)
		}
	}
}
