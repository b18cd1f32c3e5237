package oci

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeRegistry serves artifacts as a registry does, until a fault says otherwise.
type fakeRegistry struct {
	*httptest.Server

	mu        sync.Mutex
	manifests map[string]served
	blobs     map[Digest][]byte
	requests  []string
	headers   []http.Header
	// fault handles a request in its own way, and says whether it did.
	fault func(w http.ResponseWriter, r *http.Request) bool
}

type served struct {
	mediaType MediaType
	data      []byte
}

func newFakeRegistry(t testing.TB) *fakeRegistry {
	t.Helper()
	f := unstartedRegistry(t)
	f.Start()
	return f
}

func unstartedRegistry(t testing.TB) *fakeRegistry {
	t.Helper()
	f := &fakeRegistry{manifests: map[string]served{}, blobs: map[Digest][]byte{}}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// host is the registry in a reference.
func (f *fakeRegistry) host() string { return f.Listener.Addr().String() }

func (f *fakeRegistry) ref(tag string) Reference {
	return MustParseReference(f.host() + "/acme/pkg:" + tag)
}

// publish serves an artifact under a tag.
func (f *fakeRegistry) publish(t testing.TB, a Artifact, tag string) Reference {
	t.Helper()
	err := walk(t.Context(), a, Limits{}, func(ctx context.Context, d Descriptor, raw []byte) error {
		if raw != nil {
			f.serveManifest(d.Digest.String(), d.MediaType, raw)
			return nil
		}
		r, err := a.Open(ctx, d)
		if err != nil {
			return err
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		f.mu.Lock()
		f.blobs[d.Digest] = data
		f.mu.Unlock()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.manifests[tag] = f.manifests[a.Root().Digest.String()]
	return f.ref(tag)
}

func (f *fakeRegistry) serveManifest(name string, mediaType MediaType, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manifests[name] = served{mediaType, data}
}

func (f *fakeRegistry) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	f.headers = append(f.headers, r.Header.Clone())
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	f.normal(w, r)
}

func (f *fakeRegistry) normal(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, name, _ := strings.Cut(r.URL.Path, "/manifests/")
	if m, ok := f.manifests[name]; ok {
		w.Header().Set("Content-Type", string(m.mediaType))
		w.Header().Set("Docker-Content-Digest", DigestOf(m.data).String())
		serveBytes(w, r, m.data)
		return
	}
	_, hex, _ := strings.Cut(r.URL.Path, "/blobs/")
	if d, err := ParseDigest(hex); err == nil && f.blobs[d] != nil {
		w.Header().Set("Content-Type", "application/octet-stream")
		serveBytes(w, r, f.blobs[d])
		return
	}
	if strings.HasSuffix(r.URL.Path, "/tags/list") {
		f.tags(w)
		return
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
}

func (f *fakeRegistry) tags(w http.ResponseWriter) {
	var tags []string
	for name := range f.manifests {
		if !strings.HasPrefix(name, "sha256:") {
			tags = append(tags, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(tags)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"tags":[%s]}`, strings.Join(tags, ","))
}

func serveBytes(w http.ResponseWriter, r *http.Request, data []byte) {
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
}

// count is how many requests had a part in their method and path.
func (f *fakeRegistry) count(part string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

// testRemote is a client that does not wait and whose names all lie in a table.
func testRemote(t *testing.T, change func(*RemoteOptions)) *Remote {
	t.Helper()
	opts := RemoteOptions{
		Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Jitter: func() float64 { return 0 },
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, fmt.Errorf("the test has no host %s", host)
		},
	}
	if change != nil {
		change(&opts)
	}
	r := NewRemote(opts)
	t.Cleanup(r.Close)
	return r
}

// wantCode fails the test unless err is a failure of the code.
func wantCode(t *testing.T, err error, code interface{ Is(error) bool }) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v", code)
	}
	if !code.Is(err) {
		t.Fatalf("got %v, want code %v", err, code)
	}
}
