package registry_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// A status is that of the content of a version. A command that would change that of another version names it, and
// changes nothing without consent.
func TestAStatusOfSeveralVersions(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var pushes atomic.Int32
	host := startRegistry(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut || r.Method == http.MethodDelete {
			pushes.Add(1)
		}
		return false
	})
	repository := host + "/acme/boats"
	for tag, name := range map[string]string{
		"v1.0.0": "boats", "v1.0.1": "boats", "latest": "boats", "v2.0.0": "rafts", "v2": "rafts", "main": "cars",
	} {
		if _, err := publish.Package(t.Context(), repository+":"+
			tag, []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: "+name+"}\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		arguments string
		// refusal is part of the error; empty means that the command succeeds.
		refusal string
	}{
		{"yank :v1.0.0", "change the status of v1.0.1 too"},
		{"deprecate :v1.0.1", "change the status of v1.0.0 too"},
		{"unyank :v1.0.1", "change the status of v1.0.0 too"},
		{"delete :v1.0.1", "has the same content as v1.0.0"},
		{"yank :latest --yes", "`xpkg registry yank " + repository + ":v1.0.0`"},
		{"delete :v2", "`xpkg registry delete " + repository + ":v2.0.0`"},
		{"deprecate :v2", ":v2 is the version v2.0.0"},
		{"yank :v1.0.0 --yes", ""},
		{"unyank :v1.0.1 -y", ""},
		{"yank :v2.0.0", ""},
		{"yank :main", ""},
		{"delete :main", ""},
		{"delete :v2.0.0", ""},
	} {
		before := pushes.Load()
		action, rest, _ := strings.Cut(c.arguments, " ")
		tag, flags, _ := strings.Cut(rest, " ")
		code, stdout, stderr := command.Output(
			t, append([]string{"registry", action, repository + tag}, strings.Fields(flags)...)...,
		)
		if isRefused := c.refusal != ""; isRefused != (code != 0) || isRefused != (pushes.Load() == before) ||
			!strings.Contains(stderr, c.refusal) {
			t.Errorf("%s: exit code %d, %d changes\n%s%s", c.arguments, code, pushes.Load()-before, stdout, stderr)
		}
	}
}
