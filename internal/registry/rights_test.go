package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A token that only yanks sets statuses in front of a registry without the referrers API, where clients add each status
// to a list under a tag. It changes nothing else in the list.
func TestATokenThatYanksThroughABackend(t *testing.T) {
	const repository = "acme/provider-boats"
	for name, backend := range backends(t) {
		t.Run(name, func(t *testing.T) {
			address := backend(t)
			s := start(t, func(o *registry.Options) {
				o.Indexer, o.Backend = noIndexer{},
					&registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{repository}}
			})
			for tag, kind := range map[string]string{"v1.0.0": "Boat", "v1.1.0": "Raft"} {
				s.mustPush(t, repository+":"+tag, kind)
			}
			yank := s.token(t, "alice", []string{"acme/*"}, access.Yank)
			remove := s.token(t, "alice", []string{"acme/*"}, access.Yank, access.Delete)
			boat, raft := oci.MustParseReference(host+"/"+repository+":v1.0.0"),
				oci.MustParseReference(host+"/"+repository+":v1.1.0")
			for _, state := range []catalog.State{catalog.Yanked, catalog.Available, catalog.Deprecated} {
				digest, err := packagestatus.Write(t.Context(), s.client(t, yank), boat, catalog.Status{State: state})
				if err != nil {
					t.Fatalf("the status %s: %v", state, err)
				}
				got, err := packagestatus.Read(t.Context(), s.client(t, yank), boat.WithDigest(digest))
				if err != nil || got == nil || got.State != state {
					t.Errorf("the status %s is %+v, %v", state, got, err)
				}
			}
			if _, err := packagestatus.Delete(t.Context(), s.client(t, remove), raft, catalog.Status{
				State: catalog.Removed,
			}); err != nil {
				t.Errorf("a deletion: %v", err)
			}

			image, err := s.client(t, s.admin).Resolve(t.Context(), boat)
			if err != nil {
				t.Fatal(err)
			}
			tag := strings.Replace(image.Digest.String(), ":", "-", 1)
			list := oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: []oci.Descriptor{}}
			if resp := s.do(t, http.MethodGet, "/v2/"+repository+"/manifests/"+
				tag, s.admin, nil); resp.StatusCode == http.StatusOK {
				if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
					t.Fatal(err)
				}
			}
			known := list.Manifests
			pretender := image
			pretender.ArtifactType = catalog.StatusArtifactType
			for name, entries := range map[string][]oci.Descriptor{
				"an empty list":                     {},
				"a list without its first entry":    append(slices.Clone(known[min(1, len(known)):]), image),
				"a list with another artifact":      append(slices.Clone(known), image),
				"a list with a package as a status": append(slices.Clone(known), pretender),
				"a list with another version's list": append(slices.Clone(known), oci.Descriptor{
					MediaType: oci.MediaTypeOCIManifest, ArtifactType: catalog.StatusArtifactType, Digest: oci.DigestOf(nil), Size: 1,
				}),
			} {
				if len(known) == 0 && len(entries) == 0 {
					continue // The backend has the API.
				}
				list.Manifests = entries
				raw, err := json.Marshal(list)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.putIndex(t, "/v2/"+repository+"/manifests/"+tag, yank, raw); got != http.StatusForbidden {
					t.Errorf("%s: %d, want %d", name, got, http.StatusForbidden)
				}
				if got := s.putIndex(t, "/v2/"+repository+"/manifests/"+
					tag, s.token(t, "alice", []string{"acme/*"}, access.Delete), raw); got != http.StatusForbidden {
					t.Errorf("%s, with a token that deletes: %d, want %d", name, got, http.StatusForbidden)
				}
			}
		})
	}
}

// putIndex pushes an image index, and returns the status of the response.
func (s *server) putIndex(t *testing.T, target, token string, raw []byte) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+host+target, bytes.NewReader(raw))
	r.Header.Set("Content-Type", string(oci.MediaTypeOCIIndex))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

// A push whose token is revoked while the client sends the manifest changes nothing.
func TestARevokedTokenEndsItsPush(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	manifest := s.upload(t, "acme/provider-boats", build(t, packageYAML("provider-boats", "Raft")))
	for name, login := range map[string]func(secret string) string{
		"a token": func(secret string) string { return secret },
		"a bearer token": func(secret string) string {
			return s.bearer(t, secret, "repository:acme/provider-boats:pull,push")
		},
	} {
		token := login(s.token(t, "alice", []string{"acme/*"}, access.Publish))
		body := &revoking{Reader: bytes.NewReader(manifest), revoke: func() {
			store := tokens.Open(s.dir, nil)
			all, err := store.List()
			if err != nil {
				t.Error(err)
			}
			for _, token := range all {
				if token.User == "alice" {
					if err := store.Revoke(token.ID); err != nil {
						t.Error(err)
					}
				}
			}
		}}
		if got := s.do(t, http.MethodPut, "/v2/acme/provider-boats/manifests/v1.1.0", token, body).
			StatusCode; got != http.StatusUnauthorized {
			t.Errorf("%s: %d, want %d", name, got, http.StatusUnauthorized)
		}
		if got := s.tags(t, "acme/provider-boats"); !slices.Equal(got, []string{"v1.0.0"}) {
			t.Errorf("%s: the tags are %q", name, got)
		}
	}
}

// A deletion that waits for another change of the repository is refused if the policy does not allow it any more.
func TestAChangedPolicyEndsAWaitingDeletion(t *testing.T) {
	now := newClock()
	s := startPrepared(t, nil, func(s *registry.Server) { s.SetPolicyClock(now.read) })
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	unlock := s.LockRepository(t, "acme/provider-boats")
	ctx := &waitingContext{Context: t.Context(), waits: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, http.MethodDelete, "http://"+host+
		"/v2/acme/provider-boats/manifests/v1.0.0", nil)
	r.Header.Set("Authorization", "Bearer "+s.token(t, "alice", []string{"acme/*"}, access.Delete))
	ended := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		ended <- w.Code
	}()
	<-ctx.waits
	s.configure(t, "{}")
	now.add(time.Hour)
	unlock()
	if got := <-ended; got != http.StatusForbidden {
		t.Errorf("the deletion: %d", got)
	}
	if got := s.tags(t, "acme/provider-boats"); !slices.Equal(got, []string{"v1.0.0"}) {
		t.Errorf("the tags are %q", got)
	}
}

// waitingContext is a context that reports that a function waits for its end.
type waitingContext struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

// Done implements [context.Context].
func (c *waitingContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// revoking is a body that calls a function before its first byte is read.
type revoking struct {
	io.Reader
	once   sync.Once
	revoke func()
}

// Read implements [io.Reader].
func (r *revoking) Read(p []byte) (int, error) {
	r.once.Do(r.revoke)
	return r.Reader.Read(p)
}

// A backend, which does not know the client, gets no request to mount a blob that the client may not read. Registries
// read different values of several.
func TestABackendMountsOnlyWhatTheClientReads(t *testing.T) {
	images := localregistry.New(t)
	var mounted atomic.Value
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			mounted.Store(r.URL.RawQuery)
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	s := start(t, func(o *registry.Options) {
		o.Indexer = noIndexer{}
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{
			"acme/boats", "acme/public", "acme/secret/plans",
		}}
	})
	for _, reference := range []string{"acme/boats:v1.0.0", "acme/public:v1.0.0", "acme/secret/plans:v1.0.0"} {
		s.mustPush(t, reference, "Boat")
	}
	publisher := s.token(t, "alice", []string{"acme/boats"}, access.Publish)
	token := s.token(t, "alice", []string{"acme/boats", "acme/public"}, access.Publish)
	mount := "mount=" + oci.DigestOf([]byte("blob")).String()
	const public, private = "&from=acme/public", "&from=acme/secret/plans"
	for _, c := range []struct {
		query, token string
		want         bool
	}{
		{mount + public, token, true},
		{mount + public, publisher, true}, // Every client reads the repository.
		{mount + private, token, false},
		{"mount=&" + mount + private, token, false},
		{mount + "&" + mount + public, token, false},
		{mount + public + private, token, false},
		{mount + private + public, token, false},
		{mount + "&from=acme%2Fpublic%2F..%2Fsecret%2Fplans", token, false},
		{mount + "&from=index", s.admin, false},
		{mount, token, false},
	} {
		mounted.Store("no upload")
		if got := s.do(t, http.MethodPost, "/v2/acme/boats/blobs/uploads/?"+c.query, c.token, nil).
			StatusCode; got != http.StatusAccepted {
			t.Errorf("%s: %d", c.query, got)
		}
		if got := mounted.Load().(string); strings.Contains(got, "mount") != c.want || got == "no upload" {
			t.Errorf("%s is forwarded as %q", c.query, got)
		}
	}
}
