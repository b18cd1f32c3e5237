package registry_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// TestALoginPageInsteadOfTagsIsNoFaultOfThePusher pushes to a backend that responds with a page to the request for the tags.
func TestALoginPageInsteadOfTagsIsNoFaultOfThePusher(t *testing.T) {
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	t.Cleanup(func() { _ = images.Close() })
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tags/list") {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Log in</html>")
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats"}}
	})
	resp := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/v1.0.0", s.admin, strings.NewReader("{}"))
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "instead of a list of tags") || strings.Contains(string(body), "MANIFEST_INVALID") {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
}
