package registry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestAMirrorOmitsWhatItCannotRead mirrors packages that the source denies or does not have, one without its blobs, one
// with damaged blobs, one whose list of versions is damaged, and one without a version. The mirror gets everything
// else, with the statuses and the index, and the run fails with all of them. When they can be read, the next run copies
// the rest.
func TestAMirrorOmitsWhatItCannotRead(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	start := func(fails func(*http.Request) int) string {
		images := localregistry.New(t)
		return strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch code := fails(r); code {
			case 0:
				images.ServeHTTP(w, r)
			case http.StatusOK:
				recorder := httptest.NewRecorder()
				images.ServeHTTP(recorder, r)
				w.WriteHeader(code)
				_, _ = w.Write(make([]byte, recorder.Body.Len())) // Other content of the same size.
			default:
				w.WriteHeader(code)
				_, _ = io.WriteString(w, `{"errors": [{"code": "`+remote.CodeDamaged+`", "message": "the repository is damaged"}]}`)
			}
		})).URL, "http://")
	}
	var damaged atomic.Bool
	missing := map[string]int{
		"/v2/acme/denied/": http.StatusForbidden, "/v2/acme/gone/": http.StatusNotFound,
		"/v2/acme/empty/blobs/":   http.StatusNotFound,
		"/v2/acme/spoiled/blobs/": http.StatusOK, "/v2/acme/torn/": http.StatusInternalServerError}
	source := start(func(r *http.Request) int {
		for prefix, code := range missing {
			if damaged.Load() && strings.HasPrefix(r.URL.Path, prefix) {
				return code
			}
		}
		return 0
	})
	target := start(func(*http.Request) int { return 0 })
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	build := []string{"index", "build", source + "/index:main"}
	digests := map[string]oci.Digest{}
	for _, version := range []string{
		"boats:v1.0.0", "boats:v1.1.0", "denied:v1.0.0", "empty:v1.0.0", "gone:v1.0.0", "rafts:v1.0.0", "spoiled:v1.0.0",
		"torn:v1.0.0",
	} {
		name, tag, _ := strings.Cut(version, ":")
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "-" +
			strings.ReplaceAll(tag, ".", "-") + "}\n"
		digest, err := publish.Package(t.Context(), source+"/acme/"+version, []byte(stream))
		if err != nil {
			t.Fatal(err)
		}
		digests[version] = digest
		build = append(build, "--repository", source+"/acme/"+name)
	}
	for _, version := range []string{"boats:v1.0.0", "rafts:v1.0.0"} {
		if _, err := packagestatus.Write(t.Context(), client, oci.MustParseReference(source+"/acme/"+version), catalog.Status{
			State: catalog.Yanked,
		}); err != nil {
			t.Fatal(err)
		}
	}
	command.Run(t, build...)
	missing["/v2/acme/boats/manifests/"+digests["boats:v1.1.0"].String()] = http.StatusNotFound
	damaged.Store(true)
	run := []string{"registry", "mirror", source + "/index:main", "--to", target}
	for range 2 {
		code, stdout, stderr := command.Output(t, run...)
		if code != 5 || !strings.Contains(stdout, "Copied ") ||
			!strings.Contains(stderr, "MirrorUnreadable: cannot copy 6 packages: "+source+"/acme/boats:v1.1.0 (") ||
			!strings.Contains(stderr, "may read") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		for _, name := range []string{
			"/acme/denied (", "/acme/empty:v1.0.0 (", "/acme/gone (", "/acme/spoiled:v1.0.0 (", "/acme/torn (",
		} {
			if !strings.Contains(stderr, source+name) {
				t.Errorf("the error does not name %s: %s", name, stderr)
			}
		}
	}
	for _, version := range []string{"boats:v1.0.0", "rafts:v1.0.0"} {
		status, err := packagestatus.Read(
			t.Context(), client, oci.MustParseReference(target+"/acme/"+version).WithDigest(digests[version]),
		)
		if err != nil || status == nil || status.State != catalog.Yanked {
			t.Errorf("the status of %s in the mirror: %+v, %v", version, status, err)
		}
	}
	command.Run(t, "index", "show", target+"/index:main")
	damaged.Store(false)
	command.Run(t, run...)
	for version, digest := range digests {
		if got, err := client.Resolve(t.Context(), oci.MustParseReference(target+"/acme/"+version)); err != nil ||
			got.Digest != digest {
			t.Errorf("%s in the mirror: %v", version, err)
		}
	}
}
