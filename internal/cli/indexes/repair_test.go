package indexes_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// TestARepairReplacesNoStateThatItHasNotSeen publishes a state while a repair and a build read the packages. Clients
// have seen it, and would refuse another one with its sequence.
func TestARepairReplacesNoStateThatItHasNotSeen(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	images := localregistry.New(t)
	var between atomic.Pointer[func()]
	host := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/acme/boats/tags/list") {
			if do := between.Swap(nil); do != nil {
				(*do)()
			}
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	repository, index := host+"/acme/boats", host+"/index:main"
	push := func(tag string) {
		t.Helper()
		if _, err := publish.Package(t.Context(), repository+":"+
			tag, []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: "+tag[:2]+"}\n")); err != nil {
			t.Fatal(err)
		}
	}
	push("v1.0.0")
	command.Run(t, "index", "build", index, "--repository", repository)
	for i, args := range [][]string{{"index", "update", index, "--repair"}, {
		"index", "build", host + "/index:other", "--repository", repository,
	}} {
		target := args[2]
		published := func() {
			push([]string{"v1.1.0", "v1.2.0"}[i])
			command.Run(t, "index", "build", target, "--repository", repository, "--cache-dir", t.TempDir())
		}
		between.Store(&published)
		if code, stdout, stderr := command.Output(t, args...); code == 0 ||
			!strings.Contains(stderr, "error: IndexChanged: ") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		command.Run(t, args...)
	}
}
