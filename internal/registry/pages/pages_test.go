package pages_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/pages"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/internal/testing/browser"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

func get(t *testing.T, s http.Handler, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://registry.example.org"+path, nil))
	return w.Code, w.Body.String()
}

// host is the host in the names of the packages.
const host = "registry.example.org"

// serve serves the packages of a registry with a private one, and returns the token of its administrator.
func serve(t *testing.T) (s *registry.Server, token string) {
	t.Helper()
	images := localregistry.New(t)
	backend := strings.TrimPrefix(port.Serve(t, images).URL, "http://")
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	// The first example is wrong, and the last one is of another kind.
	examples := "apiVersion: provider-boats.example.org/v1\nkind: Boat\nmetadata: {name: wreck}\nkeel: 1\n---\n" +
		"apiVersion: provider-boats.example.org/v1\nkind: Boat\nmetadata: {name: beagle}\n---\n" +
		"apiVersion: provider-boats.example.org/v1\nkind: Crew\nmetadata: {name: darwin}\n"
	for name, kind := range map[string]string{"acme/provider-boats": "Boat", "acme/secret/provider-plans": "Plan"} {
		short := name[strings.LastIndexByte(name, '/')+1:]
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + short +
			"}\nspec:\n  controller: {image: example.org/x:v1}\n" +
			publish.Definition(short+".example.org", kind, "A kind.")
		built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream), Examples: []byte(examples)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Push(t.Context(), oci.MustParseReference(backend+"/"+name+":v1.0.0"), built); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(
		filepath.Join(dir, "access.yaml"), []byte("administrators: [ann]\nrules: [{prefix: acme/secret, private: true}]"),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	token, _, err := tokens.Open(dir, nil).
		Create("ann", "test", access.Scope{Repositories: []string{"*"}, Actions: access.Actions()}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s, err = registry.New(registry.Options{
		Dir: dir, Host: host, MaxUpload: 1 << 20, Pages: pages.New,
		Backend: &registry.BackendOptions{Host: backend, PlainHTTP: true, Repositories: []string{
			"acme/provider-boats", "acme/secret/provider-plans",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	next, _ := s.Site().Updated()
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	<-next
	return s, token
}

// The pages show the public packages only. The page of a kind shows the example of its author.
func TestPagesShowPublicPackagesOnly(t *testing.T) {
	s, _ := serve(t)
	for path, want := range map[string]string{
		"/": "", "/search?q=boat": "Boat", "/p/" + host + "/acme/provider-boats": "provider-boats",
		"/k/provider-boats.example.org/Boat": "Boat",
		"/api/v1/search?q=boat":              "Boat",
	} {
		if status, body := get(t, s, path); status != http.StatusOK || !strings.Contains(body, want) ||
			strings.Contains(body, "provider-plans") {
			t.Errorf("%s: %d, with %q: %v", path, status, want, strings.Contains(body, want))
		}
	}
	_, boat := get(t, s, "/k/provider-boats.example.org/Boat")
	if !strings.Contains(boat, "beagle") || strings.Contains(boat, "Generated from") || strings.Contains(boat, "wreck") ||
		strings.Contains(boat, "darwin") {
		t.Error("the page of a kind does not show the valid example in the package, or shows another one")
	}
	if _, group := get(
		t, s, "/g/provider-boats.example.org",
	); !strings.Contains(group, "only package with kinds of the group") || strings.Contains(group, "not the owner") {
		t.Errorf("the page of a group lacks the owner, or states that it is not the owner:\n%s", group)
	}
	private, _ := get(t, s, "/p/"+host+"/acme/secret/provider-plans")
	_, body := get(t, s, "/search?q=plan")
	if private != http.StatusNotFound || strings.Contains(body, "provider-plans") {
		t.Errorf("a private package: %d, found: %v", private, strings.Contains(body, "provider-plans"))
	}
}

// A browser logs in on a page of its own: all others respond to a missing right as to a missing page, without a
// question for credentials. Requests with which another site could use its login are refused.
func TestBrowsersLogIn(t *testing.T) {
	s, secret := serve(t)
	send := func(method, path, password, site string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(),
			httptest.NewRequestWithContext(t.Context(), method, "http://registry.example.org"+path, nil)
		if password != "" {
			r.SetBasicAuth("ann", password)
		}
		r.Header.Set("Sec-Fetch-Site", site)
		s.ServeHTTP(w, r)
		return w
	}
	for name, tt := range map[string]struct {
		method, path, password, site string
		status                       int
		asks                         bool
	}{
		"without credentials": {http.MethodGet, "/login", "", "none", http.StatusUnauthorized, true},
		"with a wrong token":  {http.MethodGet, "/login", "wrong", "none", http.StatusUnauthorized, true},
		"with a token":        {http.MethodGet, "/login", secret, "none", http.StatusSeeOther, false},
		"a page that does not exist": {
			http.MethodGet, "/p/registry.example.org/acme/none", "", "none", http.StatusNotFound, false,
		},
		"a form": {
			http.MethodPost, "/login", secret, "same-origin", http.StatusMethodNotAllowed, false,
		},
		"an upload by a page of a site": {
			http.MethodPost, "/v2/acme/boats/blobs/uploads/", secret, "cross-site", http.StatusForbidden, false,
		},
		"an upload by a client": {
			http.MethodPost, "/v2/acme/boats/blobs/uploads/", secret, "", http.StatusAccepted, false,
		},
		"a link on a page of a site": {http.MethodGet, "/login", secret, "cross-site", http.StatusSeeOther, false},
		"an upload by a sibling of host": {
			http.MethodPost, "/v2/acme/boats/blobs/uploads/", secret, "same-site", http.StatusForbidden, false,
		},
	} {
		got := send(tt.method, tt.path, tt.password, tt.site)
		if asks := got.Header().Get("WWW-Authenticate") != ""; got.Code != tt.status || asks != tt.asks {
			t.Errorf("%s: %d, asks for credentials: %t, want %d, %t: %s", name, got.Code, asks, tt.status, tt.asks, got.Body)
		}
	}
	if missing := send(
		http.MethodGet, "/p/registry.example.org/acme/none", "", "none",
	); !strings.Contains(missing.Body.String(), `<a href="/login">Log in</a>`) {
		t.Error("the page for a missing page has no link to log in")
	}
}

// Chromium shows the page of a private package after the login.
func TestABrowserShowsPrivatePagesAfterTheLogin(t *testing.T) {
	s, secret := serve(t)
	address := port.Serve(t, s).URL
	tab := browser.New(t).Tab(browser.View{Width: 1000, Height: 800})
	heading := func() string { return browser.Evaluate[string](tab, "document.querySelector('h1').textContent") }
	private := address + "/p/" + host + "/acme/secret/provider-plans"
	tab.Open(private)
	if got := heading(); got != "Not found" {
		t.Errorf("before the login: %s", got)
	}
	tab.Open(strings.Replace(address, "//", "//ann:"+secret+"@", 1) + "/login")
	tab.Open(private)
	if got := heading(); !strings.Contains(got, "provider-plans") {
		t.Errorf("after the login: %s", got)
	}
}
