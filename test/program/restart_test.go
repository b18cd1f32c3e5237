//go:build unix

package program_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// A control plane that is stopped and started again finds its packages as they
// were, and has no reason to write a definition or to ask a registry for a tag.
func TestRestart(t *testing.T) {
	w := newWorkshop(t)
	dir := w.newData(t, "restarted")
	state, err := w.detach(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := plane{w, state}
	ref := p.publish(t, providerFolder(t, "kept", "kept.test", 5), "restart/kept")
	p.xpkg(t, "install", "provider", ref, "kept", "--wait", "2m")
	witness := newWitness(t)
	elsewhere := witness.publish(t, p, providerFolder(t, "elsewhere", "elsewhere.test", 5), "restart/elsewhere")
	p.xpkg(t, "install", "provider", elsewhere, "elsewhere", "--wait", "2m")
	if len(witness.take()) == 0 {
		t.Fatal("the registry of the test was never asked")
	}
	c := newClient(t, p.Kubeconfig)
	before, providers := versions(t, c), listProviders(t, c)
	digest := manifestDigest(t, ref)

	if out := p.xpkg(t, "down", "--data-dir", p.DataDir); !strings.Contains(out, "The control plane is stopped.") {
		t.Errorf("xpkg down said %q", out)
	}
	if r, err := up.Status(p.DataDir); err != nil || r.Running {
		t.Fatalf("after xpkg down: %+v, %v", r, err)
	}
	again, err := w.detach(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Server != state.Server || again.Registry != state.Registry {
		t.Errorf("addresses changed from %s, %s to %s, %s", state.Server, state.Registry, again.Server, again.Registry)
	}
	// The manager works on packages in the order in which it sees them. When one
	// that is new is healthy, it has looked at the others.
	late := p.publish(t, providerFolder(t, "late", "late.test", 1), "restart/late")
	p.xpkg(t, "install", "provider", late, "late", "--wait", "2m")
	for _, name := range []string{"kept", "elsewhere"} {
		untilHealthy(t, c, name)
	}
	after := versions(t, c)
	delete(after, "thing00s.late.test")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the restart wrote definitions (-before +after):\n%s", diff)
	}
	now := listProviders(t, c)
	delete(now, "late")
	if diff := cmp.Diff(providers, now); diff != "" {
		t.Errorf("the restart wrote packages (-before +after):\n%s", diff)
	}
	if asked := witness.take(); len(asked) != 0 {
		t.Errorf("the restart asked the registry: %q", asked)
	}
	if got := manifestDigest(t, ref); got != digest {
		t.Errorf("the tag names %s after the restart, and %s before", got, digest)
	}
	p.xpkg(t, "down", "--data-dir", p.DataDir)
}

// versions returns the resource versions of all definitions.
func versions(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, d := range definitions(t, c, "") {
		out[d.Name] = d.ResourceVersion
	}
	return out
}

// listProviders returns every provider by its name.
func listProviders(t *testing.T, c client.Client) map[string]v1.Provider {
	t.Helper()
	var list v1.ProviderList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]v1.Provider{}
	for _, p := range list.Items {
		out[p.Name] = p
	}
	return out
}

// manifestDigest asks a registry for the digest of a reference by tag.
func manifestDigest(t *testing.T, ref string) string {
	t.Helper()
	host, rest, _ := strings.Cut(ref, "/")
	repository, tag, _ := strings.Cut(rest, ":")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+host+"/v2/"+repository+
		"/manifests/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", ref, answer.Status)
	}
	return answer.Header.Get("Docker-Content-Digest")
}

// A witness is a registry that records its requests.
type witness struct {
	address string
	mu      sync.Mutex
	asked   []string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	images := localregistry.New(t)
	w := &witness{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.Method+" "+r.URL.Path)
		w.mu.Unlock()
		images.ServeHTTP(rw, r)
	}))
	w.address = strings.TrimPrefix(server.URL, "http://")
	t.Cleanup(server.Close)
	return w
}

// publish pushes a package to the witness without recording the requests.
func (w *witness) publish(t *testing.T, p plane, folder, repository string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "package.xpkg")
	ref := w.address + "/" + repository + ":v1.0.0"
	p.xpkg(t, "build", "-f", folder, "-o", file)
	p.xpkg(t, "push", "-f", file, ref)
	w.take()
	return ref
}

// take returns the requests since the last call.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}
