package ocitest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Registry is a fake registry with injectable faults.
type Registry struct {
	*httptest.Server

	Mu        sync.Mutex
	Manifests map[string]served
	Blobs     map[oci.Digest][]byte
	Requests  []string
	Headers   []http.Header
	// Fault, if set, can handle a request; it reports whether it did.
	Fault func(w http.ResponseWriter, r *http.Request) bool
}

type served struct {
	mediaType oci.MediaType
	data      []byte
}

// NewRegistry starts a registry that runs until the test ends.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	f := NewUnstartedRegistry(t)
	f.Start()
	return f
}

// NewUnstartedRegistry returns a registry that is not started.
func NewUnstartedRegistry(t testing.TB) *Registry {
	t.Helper()
	f := &Registry{Manifests: map[string]served{}, Blobs: map[oci.Digest][]byte{}}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// Host returns the host of the registry, for references.
func (f *Registry) Host() string { return f.Listener.Addr().String() }

// Ref returns the reference of a tag of the repository of the tests.
func (f *Registry) Ref(tag string) oci.Reference {
	return oci.MustParseReference(f.Host() + "/acme/pkg:" + tag)
}

// Publish serves an artifact under a tag.
func (f *Registry) Publish(t testing.TB, a oci.Artifact, tag string) oci.Reference {
	t.Helper()
	err := oci.Walk(t.Context(), a, oci.Limits{}, func(ctx context.Context, d oci.Descriptor, raw []byte) error {
		if raw != nil {
			f.ServeManifest(d.Digest.String(), d.MediaType, raw)
			return nil
		}
		r, err := a.Open(ctx, d)
		if err != nil {
			return err
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		f.Mu.Lock()
		f.Blobs[d.Digest] = data
		f.Mu.Unlock()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Manifests[tag] = f.Manifests[a.Root().Digest.String()]
	return f.Ref(tag)
}

// ServeManifest adds a manifest under a tag or digest.
func (f *Registry) ServeManifest(name string, mediaType oci.MediaType, data []byte) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Manifests[name] = served{mediaType, data}
}

func (f *Registry) serve(w http.ResponseWriter, r *http.Request) {
	f.Mu.Lock()
	f.Requests = append(f.Requests, r.Method+" "+r.URL.Path)
	f.Headers = append(f.Headers, r.Header.Clone())
	fault := f.Fault
	f.Mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	f.ServeNormally(w, r)
}

// ServeNormally handles a request without a fault.
func (f *Registry) ServeNormally(w http.ResponseWriter, r *http.Request) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	_, name, _ := strings.Cut(r.URL.Path, "/manifests/")
	if m, ok := f.Manifests[name]; ok {
		w.Header().Set("Content-Type", string(m.mediaType))
		w.Header().Set("Docker-Content-Digest", oci.DigestOf(m.data).String())
		ServeBytes(w, r, m.data)
		return
	}
	_, hex, _ := strings.Cut(r.URL.Path, "/blobs/")
	if d, err := oci.ParseDigest(hex); err == nil && f.Blobs[d] != nil {
		w.Header().Set("Content-Type", "application/octet-stream")
		ServeBytes(w, r, f.Blobs[d])
		return
	}
	if strings.HasSuffix(r.URL.Path, "/tags/list") {
		f.tags(w)
		return
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
}

func (f *Registry) tags(w http.ResponseWriter) {
	var tags []string
	for name := range f.Manifests {
		if !strings.HasPrefix(name, "sha256:") {
			tags = append(tags, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(tags)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"tags":[%s]}`, strings.Join(tags, ","))
}

// ServeBytes responds with content, or the requested range of it.
func ServeBytes(w http.ResponseWriter, r *http.Request, data []byte) {
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
}

// Count returns the number of requests whose method and path contain a text.
func (f *Registry) Count(part string) int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	n := 0
	for _, r := range f.Requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}
