package registry_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// startRegistry starts a registry that allows deletions, and returns its host. It does not serve a request to which
// refuse responds.
func startRegistry(t *testing.T, refuse func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	images := localregistry.New(t)
	return strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refuse(w, r) {
			images.ServeHTTP(w, r)
		}
	})).URL, "http://")
}

// refuseDeletions responds to the deletions for which works returns false.
func refuseDeletions(works func() bool) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodDelete && !works()
		if refused {
			w.WriteHeader(http.StatusNotImplemented)
		}
		return refused
	}
}

// TestAnInterruptedPruneContinues lets the registry fail at the second deletion. The run states what it has done, and
// the next one deletes also the version whose status states its deletion already.
func TestAnInterruptedPruneContinues(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var deletions atomic.Int32
	var works atomic.Bool
	host := startRegistry(t, refuseDeletions(func() bool { return deletions.Add(1) == 1 || works.Load() }))
	repository, index := host+"/acme/boats", host+"/index:main"
	for _, tag := range []string{"v1.0.0-rc.1", "v1.0.0-rc.2", "v1.0.0-rc.3", "v1.0.0"} {
		if _, err := publish.Package(t.Context(), repository+":"+
			tag, []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: b"+tag[6:]+"}\n")); err != nil {
			t.Fatal(err)
		}
	}
	command.Run(t, "index", "build", index, "--repository", repository)
	prune := []string{"registry", "prune", index, "--undated", "--keep", "0", "--yes"}
	code, stdout, stderr := command.Output(t, prune...)
	if code == 0 || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "rc.1 ") ||
		!strings.Contains(stderr, "note: deleted 1 version, stopped at "+repository+
			":v1.0.0-rc.2, and did not reach 1 other version; run `xpkg index update "+index+"`") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	works.Store(true)
	command.Run(t, "index", "update", index)
	if code, stdout, stderr = command.Output(t, prune[:len(prune)-1]...); code != 0 ||
		!strings.Contains(stderr, "note: the deletion of "+repository+":v1.0.0-rc.2 was interrupted") {
		t.Errorf("without --yes: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command.Output(t, prune...)
	if code != 0 || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, "rc.2 ") ||
		!strings.Contains(stdout, "rc.3 ") {
		t.Fatalf("the next run: exit code %d\n%s%s", code, stdout, stderr)
	}
	command.Run(t, "index", "update", index)
	if code, stdout, stderr = command.Output(t, prune...); code != 0 || stdout != "" {
		t.Errorf("the last run: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestAnInterruptedDeletionObservesTheRules lets a run end between the status and the deletion of a version. The next
// runs keep it for a lock file, and after its status has changed.
func TestAnInterruptedDeletionObservesTheRules(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var works atomic.Bool
	host := startRegistry(t, refuseDeletions(works.Load))
	repository, index := host+"/acme/boats", host+"/index:main"
	for _, tag := range []string{"v1.0.0-rc.1", "v1.0.0"} {
		if _, err := publish.Package(t.Context(), repository+":"+
			tag, []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: b"+tag[6:]+"}\n")); err != nil {
			t.Fatal(err)
		}
	}
	command.Run(t, "index", "build", index, "--repository", repository)
	lock := filepath.Join(t.TempDir(), "xpkg.lock")
	command.Run(t, "resolve", repository+"@v1.0.0-rc.1", "--lock", lock)
	prune := []string{"registry", "prune", index, "--undated", "--keep", "0", "--yes"}
	if code, stdout, stderr := command.Output(t, prune...); code == 0 {
		t.Fatalf("the first run succeeds\n%s%s", stdout, stderr)
	}
	works.Store(true)
	command.Run(t, "index", "update", index)
	code, stdout, stderr := command.Output(t, append(prune, "--lock", lock)...)
	if code != 0 || stdout != "" || !strings.Contains(stderr, "note: "+repository+
		":v1.0.0-rc.1 is kept, although its status states that it was deleted: a lock file contains it. Run `xpkg registry unyank "+
		repository+":v1.0.0-rc.1`") {
		t.Errorf("with the lock file: exit code %d\n%s%s", code, stdout, stderr)
	}
	command.Run(t, "registry", "unyank", repository+":v1.0.0-rc.1")
	code, stdout, stderr = command.Output(t, prune...)
	if code != 0 || stdout != "" || !strings.Contains(stderr, "v1.0.0-rc.1 is kept: its status has changed") {
		t.Errorf("after unyank: exit code %d\n%s%s", code, stdout, stderr)
	}
	command.Run(t, "inspect", repository+":v1.0.0-rc.1")
}

// TestPruneContinuesAfterARepositoryOfOthers denies the access to the first of two repositories, at each of the
// requests.
func TestPruneContinuesAfterARepositoryOfOthers(t *testing.T) {
	for name, isDenied := range map[string]func(*http.Request) bool{
		"read":       func(r *http.Request) bool { return r.Method == http.MethodHead || r.Method == http.MethodGet },
		"a status":   func(r *http.Request) bool { return r.Method == http.MethodPost || r.Method == http.MethodPut },
		"a deletion": func(r *http.Request) bool { return r.Method == http.MethodDelete },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			var denies atomic.Bool
			host := startRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
				refused := denies.Load() && strings.HasPrefix(r.URL.Path, "/v2/acme/") && isDenied(r)
				if refused {
					w.WriteHeader(http.StatusForbidden)
					_, _ = w.Write([]byte(`{"errors":[{"code":"DENIED","message":"the repository is that of others"}]}`))
				}
				return refused
			})
			others, own, index := host+"/acme/boats", host+"/own/boats", host+"/index:main"
			for _, repository := range []string{others, own} {
				for _, tag := range []string{"v1.0.0-rc.1", "v1.0.0-rc.2", "v1.0.0"} {
					if _, err := publish.Package(
						t.Context(), repository+":"+tag,
						[]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: b"+tag[6:]+"}\n"),
					); err != nil {
						t.Fatal(err)
					}
				}
			}
			command.Run(t, "index", "build", index, "--repository", others, "--repository", own)
			denies.Store(true)
			code, stdout, stderr := command.Output(t, "registry", "prune", index, "--undated", "--keep", "0", "--yes")
			if code != 6 || strings.Count(stdout, own+":v1.0.0-rc.") != 2 || strings.Contains(stdout, others) ||
				!strings.Contains(stderr, "Deleted 2 versions.") ||
				!strings.Contains(stderr, "cannot prune 1 repository: "+others) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			denies.Store(false)
			command.Run(t, "inspect", others+":v1.0.0-rc.1")
		})
	}
}

// TestPruneContinuesAfterAPackageWithTooManyArtifacts keeps the version to which more artifacts refer than a client
// reads, and deletes that of another package.
func TestPruneContinuesAfterAPackageWithTooManyArtifacts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	host := startRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v2/acme/boats/referrers/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		_, _ = io.WriteString(w, `{"schemaVersion": 2, "manifests": [{}`+strings.Repeat(`,{}`, 10_001)+`]}`)
		return true
	})
	build := []string{"index", "build", host + "/index:main"}
	for _, name := range []string{"boats", "rafts"} {
		build = append(build, "--repository", host+"/acme/"+name)
		for _, tag := range []string{"v1.0.0-rc.1", "v1.0.0"} {
			stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "-" +
				strings.ReplaceAll(tag, ".", "-") + "}\n"
			if _, err := publish.Package(t.Context(), host+"/acme/"+name+":"+tag, []byte(stream)); err != nil {
				t.Fatal(err)
			}
		}
	}
	command.Run(t, build...)
	code, stdout, stderr := command.Output(t, "registry", "prune", host+"/index:main", "--undated", "--keep", "0", "--yes")
	if code != 0 || !strings.Contains(stdout, host+"/acme/rafts:v1.0.0-rc.1 ") || strings.Contains(stdout, "boats") ||
		!strings.Contains(stderr, "note: "+host+"/acme/boats:v1.0.0-rc.1 is kept: what refers to it cannot be read") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestPruneDeletesInTheRegistryOfTheIndexOnly prunes the index of a mirror, whose packages are those of the source, and
// then an index of packages of both registries.
func TestPruneDeletesInTheRegistryOfTheIndexOnly(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	never := func(http.ResponseWriter, *http.Request) bool { return false }
	source, mirror := startRegistry(t, never), startRegistry(t, never)
	for _, tag := range []string{"v1.0.0-rc.1", "v1.0.0"} {
		if _, err := publish.Package(t.Context(), source+"/acme/boats:"+
			tag, []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: b"+tag[6:]+"}\n")); err != nil {
			t.Fatal(err)
		}
	}
	command.Run(t, "index", "build", source+"/index:main", "--repository", source+"/acme/boats")
	command.Run(t, "registry", "mirror", source+"/index:main", "--to", mirror+"/mir")
	rules := []string{"--undated", "--keep", "0", "--yes"}
	code, stdout, stderr := command.Output(
		t, append([]string{"registry", "prune", mirror + "/mir/index:main"}, rules...)...,
	)
	if code != 3 || stdout != "" || !strings.Contains(stderr, "its packages are in "+source) ||
		!strings.Contains(stderr, "`xpkg registry prune "+source+"/index:main`") {
		t.Errorf("the index of a mirror: exit code %d\n%s%s", code, stdout, stderr)
	}
	command.Run(t, "inspect", source+"/acme/boats:v1.0.0-rc.1")

	command.Run(t, "index", "build", mirror+"/both:main", "--repository", source+"/acme/boats", "--repository", mirror+
		"/mir/acme/boats")
	code, stdout, stderr = command.Output(t, append([]string{"registry", "prune", mirror + "/both:main"}, rules...)...)
	if code != 0 || !strings.HasPrefix(stdout, mirror+"/mir/acme/boats:v1.0.0-rc.1 ") ||
		strings.Count(stdout, "\n") != 1 ||
		!strings.Contains(stderr, "note: 1 version omitted, in other registries than "+mirror) {
		t.Errorf("an index of both registries: exit code %d\n%s%s", code, stdout, stderr)
	}
	command.Run(t, "inspect", source+"/acme/boats:v1.0.0-rc.1")
}
