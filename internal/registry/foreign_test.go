package registry_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	crane "github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestCraneLogsIn pushes and pulls with the library of crane, by Docker's token authentication.
func TestCraneLogsIn(t *testing.T) {
	s := start(t, nil)
	address := strings.TrimPrefix(port.Serve(t, s).URL, "http://")
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	publisher := &authn.Basic{Username: "any", Password: s.token(t, "alice", []string{"acme/*"}, access.Create)}
	reader := &authn.Basic{Username: "any", Password: s.token(t, "bob", []string{"acme/*"}, access.Read)}
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	reference := func(s string) name.Reference {
		ref, err := name.ParseReference(address + "/" + s)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	registryOf := reference("acme/provider-boats:v1.0.0").Context().Registry
	if listed, err := crane.Catalog(t.Context(), registryOf); err != nil ||
		!slices.Contains(listed, "acme/provider-boats") {
		t.Errorf("crane lists the repositories %q: %v", listed, err)
	}
	private := reference("acme/secret/image:v1")
	if _, err := crane.Image(reference("acme/provider-boats:v1.0.0")); err != nil {
		t.Errorf("anonymous pull: %v", err)
	}
	if err := crane.Write(private, image, crane.WithAuth(publisher)); err != nil {
		t.Errorf("push: %v", err)
	}
	if _, err := crane.Image(private, crane.WithAuth(reader)); err != nil {
		t.Errorf("pull by a reader: %v", err)
	}
	if _, err := crane.Image(private); err == nil {
		t.Error("an anonymous pull of a private image succeeds")
	}
	other, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := crane.Write(private, other, crane.WithAuth(reader)); err == nil {
		t.Error("a push by a reader succeeds")
	}
}

func TestSkopeoLogsIn(t *testing.T) {
	program, err := exec.LookPath("skopeo")
	if err != nil {
		prerequisite.Missing(t, "skopeo is not installed: apt-get install skopeo")
	}
	s := start(t, nil)
	address := strings.TrimPrefix(port.Serve(t, s).URL, "http://")
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	token := s.token(t, "alice", []string{"acme/*"}, access.Create, access.Delete)
	work := t.TempDir()
	open, private := "docker://"+address+"/acme/provider-boats:v1.0.0", "docker://"+address+
		"/acme/secret/provider-boats:v1.0.0"
	for _, step := range []struct {
		fails bool
		args  []string
	}{
		{false, []string{"inspect", "--raw", "--tls-verify=false", open}},
		{true, []string{"inspect", "--raw", "--tls-verify=false", private}},
		{true, []string{"login", "--tls-verify=false", "-u", "any", "-p", "xpkg_wrong", address}},
		{false, []string{"login", "--tls-verify=false", "-u", "any", "-p", token, address}},
		{false, []string{"inspect", "--raw", "--tls-verify=false", private}},
		{false, []string{
			"copy", "--src-tls-verify=false", "--dest-tls-verify=false", open, "docker://" + address + "/acme/copy:v1.0.0",
		}},
		{true, []string{
			"copy", "--src-tls-verify=false", "--dest-tls-verify=false", open, "docker://" + address + "/other/copy:v1.0.0",
		}},
	} {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--insecure-policy"}, step.args...)...)
		cmd.Env = append(os.Environ(), "REGISTRY_AUTH_FILE="+filepath.Join(work, "auth.json"), "HOME="+
			work, "XDG_RUNTIME_DIR="+work)
		out, err := cmd.CombinedOutput()
		if (err != nil) != step.fails {
			t.Errorf("skopeo %q: %v\n%s", step.args, err, out)
		}
	}
}

// backends start registries of other projects.
func backends(t *testing.T) map[string]func(t *testing.T) string {
	t.Helper()
	return map[string]func(t *testing.T) string{
		"docker-registry": func(t *testing.T) string { return dockerregistry.Start(t) },
		"xpkg":            func(t *testing.T) string { return startRegistry(t) },
	}
}

// startRegistry starts a registry without access control.
func startRegistry(t testing.TB) string {
	t.Helper()
	return strings.TrimPrefix(port.Serve(t, localregistry.New(t)).URL, "http://")
}

func TestAServerInFrontOfAnotherRegistryAddsAccessControlAndSearch(t *testing.T) {
	for name, backend := range backends(t) {
		t.Run(name, func(t *testing.T) {
			address := backend(t)
			direct := remote.New(remote.Options{})
			t.Cleanup(direct.Close)
			push := func(repository, kind string) {
				short := repository[strings.LastIndexByte(repository, '/')+1:]
				if _, err := direct.Push(
					t.Context(), oci.MustParseReference(address+"/"+repository+":v1.0.0"), build(t, packageYAML(short, kind)),
				); err != nil {
					t.Fatal(err)
				}
			}
			push("acme/provider-boats", "Boat")
			push("acme/secret/provider-plans", "Plan")
			s := start(t, func(o *registry.Options) {
				o.Host = host
				o.Backend = &registry.BackendOptions{
					Host: address, PlainHTTP: true,
					Repositories: []string{"acme/provider-boats", "acme/secret/provider-plans", "acme/provider-rafts"},
					PublishIndex: true,
				}
			})
			s.waitUntil(t, "the backend is indexed", func() bool { return s.indexed(t) >= 2 })
			if got := s.found(t, "", "type:Provider"); slices.Contains(got, "acme/secret/provider-plans") {
				t.Errorf("the search for an anonymous client finds %q", got)
			}
			// A client may send the content with the first request.
			blob := "blob"
			one := s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/?digest="+
				oci.DigestOf([]byte(blob)).String(), s.admin, strings.NewReader(blob))
			if one.StatusCode != http.StatusAccepted {
				t.Errorf("an upload in one request: %d", one.StatusCode)
			}
			anonymous := s.bearer(t, "", "repository:acme/secret/provider-plans:pull")
			missing := s.bearer(t, "", "repository:acme/secret/provider-never:pull")
			for _, rest := range []string{"/tags/list", "/manifests/v1.0.0", "/referrers/" +
				oci.DigestOf(nil).String(), "/blobs/" + oci.DigestOf(nil).String()} {
				private := snapshot(t, s.do(t, http.MethodGet, "/v2/acme/secret/provider-plans"+rest, anonymous, nil))
				absent := snapshot(t, s.do(t, http.MethodGet, "/v2/acme/secret/provider-never"+rest, missing, nil))
				if private != absent {
					t.Errorf("%s:\n%s\nof a repository that does not exist:\n%s", rest, private, absent)
				}
			}
			s.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
			s.waitUntil(t, "a push through the server is found", func() bool { return len(s.found(t, "", "kind:Raft")) == 1 })
			if err := s.push(t, s.admin, "acme/provider-rafts:v1.0.0", "Canoe"); err == nil {
				t.Error("a version was changed")
			}
			ref := oci.MustParseReference(host + "/acme/provider-rafts:v1.0.0")
			if _, err := packagestatus.Write(t.Context(), s.client(t, s.admin), ref, catalog.Status{
				State: catalog.Yanked,
			}); err != nil {
				t.Fatal(err)
			}
			s.waitUntil(t, "a yanked version is not the newest", func() bool { return len(s.found(t, "", "kind:Raft")) == 0 })
			if err := s.push(t, s.admin, "index:v1.0.0", "Boat"); err == nil {
				t.Error("a client pushes to the repository of the index")
			}
			// The backend itself has the index of the public packages, which the server reads as any client does.
			client := newReader(t, s)
			s.waitUntil(t, "the index is in the backend", func() bool { return slices.Equal(client.kinds(t), []string{"Boat"}) })
			if _, err := direct.Resolve(t.Context(), oci.MustParseReference(address+"/index:main")); err != nil {
				t.Errorf("the backend has no index: %v", err)
			}
		})
	}
}

// A server in front of another server of xpkg indexes the repositories that this one lists.
// TestBrowsersRunNothingOfTheDistributionAPI checks the responses of a registry that serves content with a type of its
// choice.
func TestBrowsersRunNothingOfTheDistributionAPI(t *testing.T) {
	backend := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<script>alert(1)</script>")
	})).URL, "http://")
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: backend, PlainHTTP: true, Repositories: []string{"acme/provider-boats"}}
	})
	blob := oci.DigestOf(nil).String()
	for _, path := range []string{"/v2/acme/provider-boats/blobs/" +
		blob, "/v2/acme/provider-boats/manifests/v1.0.0", "/v2/acme/provider-boats/tags/list", "/v2/", "/v2/<script>"} {
		resp := s.do(t, http.MethodGet, path, "", nil)
		_ = resp.Body.Close()
		if h := resp.Header; h.Get("Content-Security-Policy") != "sandbox; default-src 'none'" ||
			h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q, %q", path, h["Content-Security-Policy"], h["X-Content-Type-Options"])
		}
	}
}

// TestAServerInFrontOfItselfEndsRequests checks that a server whose backend is itself forwards no request again and
// again.
func TestAServerInFrontOfItselfEndsRequests(t *testing.T) {
	var itself atomic.Pointer[registry.Server]
	var requests atomic.Int64
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if s := itself.Load(); s != nil {
			s.ServeHTTP(w, r)
		}
	})).URL, "http://")
	s := startPrepared(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true}
	}, func(s *registry.Server) { itself.Store(s) })
	for _, path := range []string{
		"/v2/acme/provider-boats/tags/list", "/v2/acme/provider-boats/manifests/v1.0.0", "/v2/_catalog",
	} {
		before := requests.Load()
		resp := s.do(t, http.MethodGet, path, s.admin, nil)
		_ = resp.Body.Close()
		if n := requests.Load() - before; resp.StatusCode < http.StatusInternalServerError || n > 100 {
			t.Errorf("%s: status %d after %d requests", path, resp.StatusCode, n)
		}
	}
}

func TestAServerInFrontOfAServerFindsItsPackages(t *testing.T) {
	s := start(t, nil)
	address := strings.TrimPrefix(port.Serve(t, s).URL, "http://")
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/secret/provider-plans:v1.0.0", "Plan")
	front := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true}
	})
	front.waitUntil(t, "the first index is ready", func() bool { return front.Site().Healthy() == nil })
	if got := slices.Compact(front.found(t, front.admin, "type:Provider")); !slices.Equal(got, []string{
		"acme/provider-boats",
	}) {
		t.Errorf("found %q", got)
	}
}

// A server in front of another server publishes versions, of which the other one alone decides the content.
func TestAServerInFrontOfAServerPublishes(t *testing.T) {
	s := start(t, nil)
	address := strings.TrimPrefix(port.Serve(t, s).URL, "http://")
	var fronts []*server
	for range 2 {
		front := start(t, func(o *registry.Options) {
			o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Remote: remote.Options{
				Keychain: credentialsOf(s.admin),
			}}
		})
		fronts = append(fronts, front)
		address = strings.TrimPrefix(port.Serve(t, front).URL, "http://")
		s = front
	}
	fronts[0].mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	fronts[1].mustPush(t, "acme/provider-boats:v1.1.0", "Boat")
	fronts[1].mustPush(t, "acme/provider-planes:v1.0.0", "Plane")
	if err := fronts[1].push(
		t, fronts[1].admin, "acme/provider-boats:v1.0.0", "Barge",
	); !errors.Is(err, remote.ErrImmutable) {
		t.Errorf("other content of a version was not refused: %v", err)
	}
	if status := fronts[0].pushManifest(
		t.Context(), "acme/provider_boats", "v1.0.0", "similar",
	); status != http.StatusConflict {
		t.Errorf("a similar name: status %d", status)
	}
}

// credentialsOf are the credentials of a token for all registries.
type credentialsOf string

// Resolve implements [authn.Keychain].
func (token credentialsOf) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(authn.AuthConfig{Username: "token", Password: string(token)}), nil
}
