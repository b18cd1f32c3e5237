package registry_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	crane "github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// recorder is a registry that records the requests for packages.
type recorder struct {
	http.Handler
	mu       sync.Mutex
	requests []string
}

// ServeHTTP implements [http.Handler].
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if path := request.URL.Path; strings.HasPrefix(path, "/v2/acme/") {
		r.mu.Lock()
		r.requests = append(r.requests, request.Method+" "+strings.TrimPrefix(path, "/v2/acme/"))
		r.mu.Unlock()
	}
	r.Handler.ServeHTTP(w, request)
}

// take returns the requests since the last call, sorted.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	slices.Sort(taken)
	return taken
}

// round waits for an update of all repositories that starts after the call.
func (s *server) round(t testing.TB) {
	t.Helper()
	for range 2 {
		_, before := s.Site().Updated()
		s.Site().CheckAll()
		s.waitUntil(t, "an update", func() bool {
			_, n := s.Site().Updated()
			return n > before
		})
	}
}

// An update of an unchanged registry lists the tags. It reads no digest and no content, and builds neither the index
// nor the search database. The registry has a package with a status, a version that cannot be read, and an image that
// is no package.
func TestAnUpdateOfAnUnchangedBackendReadsNoContent(t *testing.T) {
	images := localregistry.New(t)
	backend := &recorder{Handler: images}
	address := strings.TrimPrefix(port.Serve(t, backend).URL, "http://")
	direct := remote.New(remote.Options{})
	t.Cleanup(direct.Close)
	push := func(reference string, stream []byte) oci.Digest {
		t.Helper()
		d, err := direct.Push(t.Context(), oci.MustParseReference(address+"/acme/"+reference), build(t, stream))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	yanked := push("provider-boats:v1.0.0", packageYAML("provider-boats", "Boat"))
	push("provider-boats:v1.1.0", packageYAML("provider-boats", "Boat"))
	push("provider-boats:v2.0.0", []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: [\n"))
	if _, err := packagestatus.Write(
		t.Context(), direct, oci.MustParseReference(address+"/acme/provider-boats:v1.0.0"),
		catalog.Status{State: catalog.Yanked},
	); err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	other, err := name.ParseReference(address + "/acme/image:v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := crane.Write(other, image); err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{
			Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats", "acme/image", "acme/missing"},
			PublishIndex: true,
		}
	})
	s.waitUntil(t, "the first index is ready", func() bool { return s.Site().Healthy() == nil })
	s.waitUntil(t, "the index is published", func() bool {
		s.Site().CheckAll()
		_, err := direct.Resolve(t.Context(), oci.MustParseReference(address+"/index:main"))
		return err == nil
	})
	s.round(t)
	first := s.Site().Catalog("")
	backend.take()
	s.Site().CheckAll()
	s.round(t)
	requests := backend.take()
	unchanged := []string{
		"GET image/tags/list", "GET missing/tags/list", "GET provider-boats/tags/list",
	}
	if got := slices.Compact(slices.Clone(requests)); !slices.Equal(got, unchanged) {
		t.Errorf("an update of an unchanged registry makes the requests\n%s", strings.Join(got, "\n"))
	}
	backend.take()
	s.CompareTags(t.Context())
	compared := []string{
		"HEAD image/manifests/v1.0.0", "HEAD provider-boats/manifests/" + catalog.StatusTag(yanked),
		"HEAD provider-boats/manifests/v1.0.0", "HEAD provider-boats/manifests/v1.1.0",
		"HEAD provider-boats/manifests/v2.0.0",
	}
	// An update can run at the same time.
	isList := func(request string) bool { return strings.HasSuffix(request, "/tags/list") }
	if got := slices.DeleteFunc(backend.take(), isList); !slices.Equal(got, compared) {
		t.Errorf("a comparison of the tags makes the requests\n%s", strings.Join(got, "\n"))
	}
	if !s.Site().Catalog("").SharesRows(first) {
		t.Error("the index of an unchanged registry was built again")
	}
	if !s.PublishedSharesRows() {
		t.Error("the published index is in memory a second time")
	}

	push("provider-boats:v1.2.0", packageYAML("provider-boats", "Raft"))
	backend.take()
	s.round(t)
	added := []string{
		"GET image/tags/list", "GET missing/tags/list", "GET provider-boats/blobs/", "GET provider-boats/manifests/v1.2.0",
		"GET provider-boats/tags/list", "HEAD provider-boats/manifests/v1.2.0",
	}
	requests = backend.take()
	for i, request := range requests {
		if at := strings.Index(request, "sha256:"); at > 0 {
			requests[i] = request[:at]
		}
	}
	if got := slices.Compact(requests); !slices.Equal(got, added) {
		t.Errorf("an update after a push makes the requests\n%s", strings.Join(got, "\n"))
	}
	if len(s.found(t, "", "kind:Raft")) != 1 {
		t.Error("the new version is not found")
	}
	if err := os.RemoveAll(s.Site().RecordPath("")); err != nil {
		t.Fatal(err)
	}
	s.round(t)
	if _, err := os.Stat(s.Site().RecordPath("")); !errors.Is(err, fs.ErrNotExist) || s.Site().Failure() != nil {
		t.Errorf("an update without a change writes a record: %v, %v", err, s.Site().Failure())
	}
}

// A push to a repository with many tags asks for its own tag only, and tags that moved in the backend are found by
// rounds that compare a limited number of them.
func TestManyTagsOfABackendDelayNoUpdate(t *testing.T) {
	images := localregistry.New(t)
	backend := &recorder{Handler: images}
	address := strings.TrimPrefix(port.Serve(t, backend).URL, "http://")
	direct := remote.New(remote.Options{})
	t.Cleanup(direct.Close)
	push := func(tag, kind string) {
		t.Helper()
		if _, err := direct.Push(
			t.Context(), oci.MustParseReference(address+"/acme/provider-boats:"+tag),
			build(t, packageYAML("provider-boats", kind)),
		); err != nil {
			t.Fatal(err)
		}
	}
	const tags = registry.MostCompared + 20
	push("v1.0.0", "Boat")
	d, err := direct.Artifact(t.Context(), oci.MustParseReference(address+"/acme/provider-boats:v1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < tags; i++ {
		if _, err := direct.Push(
			t.Context(), oci.MustParseReference(address+"/acme/provider-boats:v1.0."+strconv.Itoa(i)), d,
		); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats"}}
	})
	s.waitUntil(t, "the first index is ready", func() bool { return s.Site().Healthy() == nil })
	s.round(t)
	backend.take()
	heads := func() (n int) {
		for _, request := range backend.take() {
			if strings.HasPrefix(request, http.MethodHead+" provider-boats/manifests/v") {
				n++
			}
		}
		return n
	}

	// The server learns of the push from the backend, and through itself.
	push("v2.0.0", "Raft")
	s.round(t)
	if n := heads(); n > 2 {
		t.Errorf("a new tag costs %d requests for digests", n)
	}
	s.mustPush(t, "acme/provider-boats:v3.0.0", "Canoe")
	s.waitUntil(t, "the push is found", func() bool { return len(s.found(t, "", "kind:Canoe")) == 1 })
	s.round(t)
	if n := heads(); n > 10 {
		t.Errorf("a push costs %d requests for digests", n)
	}

	push("v3.0.0", "Dinghy") // The tag moves.
	s.round(t)
	if n := heads(); n > 2 || len(s.found(t, "", "kind:Dinghy")) != 0 {
		t.Errorf("an update reads tags that are known, with %d requests", n)
	}
	rounds := 0
	for len(s.found(t, "", "kind:Dinghy")) == 0 && rounds < 3 {
		s.CompareTags(t.Context())
		if n := heads(); n > registry.MostCompared {
			t.Errorf("a round compares %d tags", n)
		}
		s.round(t)
		rounds++
	}
	if rounds > 2 {
		t.Error("the moved tag is not found within two rounds")
	}
}
