package up

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/ports"
	sites "github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// token is the keychain of a client with the token of the registry.
type token string

// Resolve implements [authn.Keychain].
func (k token) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: RegistryUser, Password: string(k)}, nil
}

func pushKind(t *testing.T, client *remote.Client, reference, name, kind string) {
	t.Helper()
	built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: " + name +
			"\nspec:\n  controller: {image: example.org/x:v1}\n" +
			publish.Definition(name+".example.org", kind, "A kind of a test."),
	)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(t.Context(), oci.MustParseReference(reference), built); err != nil {
		t.Fatal(err)
	}
}

func page(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", address, response.Status, err, body)
	}
	return string(body)
}

// openDir opens a new data directory, and closes it at the end of the test.
func openDir(t *testing.T) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(filepath.Join(t.TempDir(), "data"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestTheRegistryLocksItsFolder checks that `xpkg registry serve` and the registry of the control plane do not use one
// folder: they would lose versions that both have acknowledged.
func TestTheRegistryLocksItsFolder(t *testing.T) {
	dir := openDir(t)
	begin := func() (*registryServer, error) {
		listener, err := ports.Listen("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		r, err := startRegistry(Options{MaxUpload: 1 << 20}.withDefaults(), dir, listener, nil)
		if err != nil {
			_ = listener.Close()
		}
		return r, err
	}
	serve := func() (*sites.Server, error) { return sites.New(sites.Options{Dir: dir.Path, Host: "registry.test"}) }
	r, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serve(); !errors.Is(err, sites.ErrServer) {
		t.Errorf("a server on the folder of the registry that runs: %v", err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	server, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begin(); !errors.Is(err, ErrDataDirUnusable) {
		t.Errorf("the registry on the folder of a server that runs: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = begin(); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestThePagesOfTheRegistryOpenAtTheFirstVisitAndFollowPushes(t *testing.T) {
	dir := openDir(t)
	listener, err := ports.Listen("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := startRegistry(Options{MaxUpload: 1 << 20}.withDefaults(), dir, listener, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	secret, err := ensureToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	client := remote.New(remote.Options{Keychain: token(secret)})
	t.Cleanup(client.Close)

	pushKind(t, client, r.address+"/acme/provider-boats:v1.0.0", "provider-boats", "Boat")
	if _, err := client.Resolve(t.Context(), oci.MustParseReference(r.address+"/acme/provider-boats:v1.0.0")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir.Cache(), "pages")); r.pages.opened != nil || !os.IsNotExist(err) {
		t.Error("the index is open before the first visit of a page")
	}
	if home := page(t, "http://"+r.address+"/"); !strings.Contains(home, "provider-boats") {
		t.Errorf("the start page lacks the package: %s", home)
	}
	if found := page(t, "http://"+r.address+
		"/search?q=boat"); !strings.Contains(found, "/k/provider-boats.example.org/Boat") {
		t.Errorf("the search lacks the kind: %s", found)
	}
	next, _ := r.pages.opened.site.Updated()
	pushKind(t, client, r.address+"/acme/provider-rafts:v1.0.0", "provider-rafts", "Raft")
	select {
	case <-next:
	case <-t.Context().Done():
	}
	if found := page(t, "http://"+r.address+
		"/search?q=raft"); !strings.Contains(found, "/k/provider-rafts.example.org/Raft") {
		t.Errorf("the search lacks the kind of a later push: %s", found)
	}
	rebound, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	rebound.Host = "attacker.example.org"
	response, err := http.DefaultClient.Do(rebound)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a page for another host: %s", response.Status)
	}
}
