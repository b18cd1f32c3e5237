package registry_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestALoginPageInsteadOfTagsIsNoFaultOfThePusher pushes to a backend that responds with a page to the request for the
// tags.
func TestALoginPageInsteadOfTagsIsNoFaultOfThePusher(t *testing.T) {
	images := localregistry.New(t)
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
	if err != nil || resp.StatusCode != http.StatusBadGateway ||
		!strings.Contains(string(body), "instead of a list of tags") || strings.Contains(string(body), "MANIFEST_INVALID") {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
}

// TestReferrersOfABackendWithoutTheirAPI asks for referrers: a client reads the tag with their list if the registry has
// no API for them, unless the response states that the repository does not exist. A repository that the client may not
// read looks as one that does not exist.
func TestReferrersOfABackendWithoutTheirAPI(t *testing.T) {
	for body, want := range map[string]string{
		"404 page not found\n": "UNSUPPORTED",
		`{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry"}]}`: "NAME_UNKNOWN",
	} {
		address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, body)
			}
		})).URL, "http://")
		s := start(t, func(o *registry.Options) {
			o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{"acme/boats"}}
			if err := os.WriteFile(
				filepath.Join(o.Dir, "access.yaml"), []byte("rules: [{prefix: secret, private: true}]\n"), 0o600,
			); err != nil {
				t.Fatal(err)
			}
		})
		reader := s.token(t, "bob", []string{"*"}, access.Read)
		for _, repository := range []string{"acme/boats", "secret/boats"} {
			resp := s.do(t, http.MethodGet, "/v2/"+repository+"/referrers/"+oci.DigestOf(nil).String(), reader, nil)
			got, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusNotFound || !strings.Contains(string(got), `"`+want+`"`) {
				t.Errorf("%s after %q: %d %s, %v", repository, body, resp.StatusCode, got, err)
			}
		}
	}
}

// brokenKeychain is a keychain whose credentials cannot be read.
type brokenKeychain struct{}

// Resolve implements [authn.Keychain].
func (brokenKeychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.Anonymous, errors.New("no identity")
}

// A server whose credentials for the backend cannot be read serves what is public there.
func TestBackendWithoutReadableCredentials(t *testing.T) {
	address := strings.TrimPrefix(port.Serve(t, localregistry.New(t)).URL, "http://")
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{
			Host: address, PlainHTTP: true, Repositories: []string{"acme/boats"},
			Remote: remote.Options{Keychain: brokenKeychain{}},
		}
	})
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
}
