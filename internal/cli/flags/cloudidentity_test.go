package flags

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/xpkg-dev/xpkg/internal/testing/clouds"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// The manager, and commands that read or write, use the identity of a cloud where the user has configured nothing else.
func TestCloudIdentityComesLast(t *testing.T) {
	home := clouds.ClearEnvironment(t)
	t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
	stand := &clouds.Clouds{Machine: "google"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "169.254.169.254"
		stand.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	password := func(f RegistryFlags) string {
		opts, err := f.Options(t.Context(), oci.Limits{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		auth, err := opts.Keychain.Resolve(name.MustParseReference("eu.gcr.io/acme/pkg:v1").Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := auth.Authorization()
		if err != nil {
			t.Fatal(err)
		}
		return c.Password
	}
	all := map[string]RegistryFlags{"reads": {}, "writes": {Keychain: DataDirFlag{}.WriteKeychain()}}
	for use, f := range all {
		if got := password(f); got == "" || got != stand.Valid() {
			t.Errorf("%s: got %q, want the token %q", use, got, stand.Valid())
		}
	}
	config := `{"auths":{"eu.gcr.io":{"username":"me","password":"mine"}}}`
	if err := os.MkdirAll(filepath.Join(home, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".docker", "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := stand.Asked("169.254.169.254")
	for use, f := range all {
		if got := password(f); got != "mine" || stand.Asked("169.254.169.254") != asked {
			t.Errorf("%s: got %q after %d requests", use, got, stand.Asked("169.254.169.254")-asked)
		}
	}
}
