package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/internal/testing/inprocess"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	host = "registry.example.org"
	// deadline bounds the waits of the tests.
	deadline = 30 * time.Second
	policy   = `
rules:
- prefix: acme
  owners: [alice]
- prefix: acme/secret
  private: true
  owners: [alice]
  readers: [bob]
`
)

// server is a registry server of a test.
type server struct {
	*registry.Server
	dir string
	// admin is a token for everything.
	admin string
	// stop stops the server before the end of the test.
	stop func()
}

func start(t testing.TB, change func(*registry.Options)) *server {
	t.Helper()
	return startPrepared(t, change, func(*registry.Server) {})
}

// startPrepared starts a server that was changed before.
func startPrepared(t testing.TB, change func(*registry.Options), prepare func(*registry.Server)) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	s.admin = s.token(t, "admin", []string{"*"}, access.Actions()...)
	o := registry.Options{Dir: s.dir, Host: host, MaxUpload: 1 << 20}
	if change != nil {
		change(&o)
	}
	var err error
	if s.Server, err = registry.New(o); err != nil {
		t.Fatal(err)
	}
	prepare(s.Server)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// token creates a token.
func (s *server) token(t testing.TB, user string, repositories []string, actions ...access.Action) string {
	t.Helper()
	secret, _, err := tokens.Open(s.dir, nil).
		Create(user, "test", access.Scope{Repositories: repositories, Actions: actions}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// do sends a request with a token, or without credentials, and returns the response.
func (s *server) do(t testing.TB, method, target, token string, body io.Reader) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+"/", body)
	path, query, _ := strings.Cut(target, "?")
	r.URL.Path, r.URL.RawQuery = path, query
	r.Header.Set("Accept", string(oci.MediaTypeOCIManifest))
	r.Header.Add("Accept", string(oci.MediaTypeOCIIndex))
	if body != nil {
		r.Header.Set("Content-Type", string(oci.MediaTypeOCIManifest))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

// direct sends the requests of a client to a server, with a token.
type direct struct {
	handler http.Handler
	token   string
}

// RoundTrip implements [http.RoundTripper].
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	return inprocess.Transport{Handler: d.handler}.RoundTrip(r)
}

// client returns a client of the server with a token.
func (s *server) client(t testing.TB, token string) *remote.Client {
	t.Helper()
	c := remote.New(remote.Options{Transport: direct{s, token}, Attempts: 1})
	t.Cleanup(c.Close)
	return c
}

// packageYAML returns a Provider with a kind.
func packageYAML(name, kind string) []byte {
	return []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: " + name +
		"\nspec:\n  controller: {image: example.org/x:v1}\n" +
		publish.Definition(name+".example.org", kind, "A kind of a test."))
}

func build(t testing.TB, stream []byte) oci.Artifact {
	t.Helper()
	built, err := image.Build(t.Context(), image.Input{PackageYAML: stream})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// push pushes a package with a kind.
func (s *server) push(t testing.TB, token, reference, kind string) error {
	t.Helper()
	ref := oci.MustParseReference(host + "/" + reference)
	name := ref.Repository[strings.LastIndexByte(ref.Repository, '/')+1:]
	_, err := s.client(t, token).Push(t.Context(), ref, build(t, packageYAML(name, kind)))
	return err
}

func (s *server) mustPush(t testing.TB, reference, kind string) {
	t.Helper()
	if err := s.push(t, s.admin, reference, kind); err != nil {
		t.Fatalf("push %s: %v", reference, err)
	}
}

// checkTombstone fails unless the status of deleted content states that a version was removed.
func (s *server) checkTombstone(t *testing.T, content oci.Reference, tag string) {
	t.Helper()
	got, err := packagestatus.Read(t.Context(), s.client(t, ""), content)
	if err != nil || got == nil || got.State != catalog.Removed || got.Tag != tag {
		t.Errorf("the tombstone: %+v, %v", got, err)
	}
}

// waitUntil waits for updates of the index until a condition holds.
func (s *server) waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	s.waitAtMost(t, deadline, what, holds)
}

// waitAtMost waits like waitUntil, with another deadline.
func (s *server) waitAtMost(t testing.TB, most time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	for {
		next, _ := s.Site().Updated()
		if holds() {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("timeout: %s", what)
		}
	}
}

// found returns the repositories of the hits of a search.
func (s *server) found(t testing.TB, token, query string) []string {
	t.Helper()
	resp := s.do(t, http.MethodGet, "/api/v1/search?q="+query, token, nil)
	var got struct{ Hits []struct{ Repository string } }
	raw, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(raw, &got) != nil {
		t.Fatalf("search %s: %v: %s", query, err, raw)
	}
	var repositories []string
	for _, h := range got.Hits {
		repositories = append(repositories, strings.TrimPrefix(h.Repository, host+"/"))
	}
	return repositories
}

// indexed returns the number of packages that an administrator finds. A package and its kinds are hits of their own.
func (s *server) indexed(t testing.TB) int {
	t.Helper()
	return len(slices.Compact(slices.Sorted(slices.Values(s.found(t, s.admin, "provider")))))
}

// snapshot returns everything that a client can see of a response.
func snapshot(t testing.TB, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, resp.StatusCode)
	resp.Header.Del("Date")
	_ = resp.Header.Write(&out) // A buffer accepts everything.
	out.Write(body)
	return out.String()
}

// configured returns a change of the options that writes an access configuration into the folder of the server.
func configured(t testing.TB, document string) func(*registry.Options) {
	t.Helper()
	return func(o *registry.Options) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(o.Dir, "access.yaml"), []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// uploadText pushes a blob and returns the status and the digest.
func (s *server) uploadText(t *testing.T, repository, content string) (int, oci.Digest) {
	t.Helper()
	d := oci.DigestOf([]byte(content))
	begun := s.do(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/", s.admin, nil).Header.Get("Location")
	return s.do(t, http.MethodPut, begun+"&digest="+d.String(), s.admin, strings.NewReader(content)).StatusCode, d
}

// put pushes a manifest.
func (s *server) put(t *testing.T, repository, reference, content string) int {
	t.Helper()
	return s.do(t, http.MethodPut, "/v2/"+repository+"/manifests/"+reference, s.admin, strings.NewReader(content)).
		StatusCode
}

// subjectManifest returns a manifest with a configuration, a layer and perhaps a subject.
func subjectManifest(config, layer oci.Digest, subject string) string {
	if subject != "" {
		subject = fmt.Sprintf(
			`,"subject":{"mediaType":%q,"digest":%q,"size":%d}`, oci.MediaTypeOCIManifest, oci.DigestOf([]byte(subject)),
			len(subject),
		)
	}
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/example","digest":%q,"size":1},`+
		`"layers":[{"mediaType":"application/example","digest":%q,"size":1}]%s}`, oci.MediaTypeOCIManifest, config, layer,
		subject)
}
