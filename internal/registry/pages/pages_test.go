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
	"github.com/xpkg-dev/xpkg/internal/registry/pages"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

func get(t *testing.T, s http.Handler, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://registry.example.org"+path, nil))
	return w.Code, w.Body.String()
}

// TestPagesShowPublicPackagesOnly serves the packages of a registry with a private one. The page of a kind shows the example of its author.
func TestPagesShowPublicPackagesOnly(t *testing.T) {
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	t.Cleanup(func() { _ = images.Close() })
	backend := strings.TrimPrefix(port.Serve(t, images).URL, "http://")
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	// The first example is wrong, and the last one is of another kind.
	examples := "apiVersion: provider-boats.example.org/v1\nkind: Boat\nmetadata: {name: wreck}\nkeel: 1\n---\n" +
		"apiVersion: provider-boats.example.org/v1\nkind: Boat\nmetadata: {name: beagle}\n---\n" +
		"apiVersion: provider-boats.example.org/v1\nkind: Crew\nmetadata: {name: darwin}\n"
	for name, kind := range map[string]string{"acme/provider-boats": "Boat", "acme/secret/provider-plans": "Plan"} {
		short := name[strings.LastIndexByte(name, '/')+1:]
		stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + short + "}\nspec:\n  controller: {image: example.org/x:v1}\n" +
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
	if err := os.WriteFile(filepath.Join(dir, "access.yaml"), []byte("rules: [{prefix: acme/secret, private: true}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	const host = "registry.example.org"
	s, err := registry.New(registry.Options{
		Dir: dir, Host: host, MaxUpload: 1 << 20, Pages: pages.New,
		Backend: &registry.BackendOptions{Host: backend, PlainHTTP: true, Repositories: []string{"acme/provider-boats", "acme/secret/provider-plans"}},
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
	for path, want := range map[string]string{
		"/": "", "/search?q=boat": "Boat", "/p/" + host + "/acme/provider-boats": "provider-boats", "/k/provider-boats.example.org/Boat": "Boat",
		"/api/v1/search?q=boat": "Boat",
	} {
		if status, body := get(t, s, path); status != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "provider-plans") {
			t.Errorf("%s: %d, with %q: %v", path, status, want, strings.Contains(body, want))
		}
	}
	_, boat := get(t, s, "/k/provider-boats.example.org/Boat")
	if !strings.Contains(boat, "beagle") || strings.Contains(boat, "Generated from") || strings.Contains(boat, "wreck") || strings.Contains(boat, "darwin") {
		t.Error("the page of a kind does not show the valid example in the package, or shows another one")
	}
	private, _ := get(t, s, "/p/"+host+"/acme/secret/provider-plans")
	_, body := get(t, s, "/search?q=plan")
	if private != http.StatusNotFound || strings.Contains(body, "provider-plans") {
		t.Errorf("a private package: %d, found: %v", private, strings.Contains(body, "provider-plans"))
	}
}
