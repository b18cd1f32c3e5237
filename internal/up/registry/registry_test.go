package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/stream"

	sites "github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/up/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	ociremote "github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const token = "token-of-the-control-plane"

// A server is a protected registry with its images in a folder.
type server struct {
	host, dir string
	reports   []string
}

func serve(t testing.TB, o registry.Options) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	store, images := sites.OpenStore(s.dir, sites.GarbageCollection{}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = store.Close() })
	o.Store = store
	o.Repositories = sites.NewLocalList(store, slog.New(slog.DiscardHandler))
	o.Limiter = limit.New(limit.OfProcess(), nil)
	o.Token, o.Login = token, "xpkg login 127.0.0.1:15000 --data-dir /data"
	o.Report = func(message string) { s.reports = append(s.reports, message) }
	if o.MaxUpload == 0 {
		o.MaxUpload = 1 << 20
	}
	s.host = strings.TrimPrefix(port.Serve(t, registry.Handler(images, o)).URL, "http://")
	return s
}

// do makes a request and returns the answer with its body.
func (s *server) do(t testing.TB, method, path, authorization string, body io.Reader) (*http.Response, string) {
	t.Helper()
	address := path
	if strings.HasPrefix(path, "/") {
		address = "http://" + s.host + path
	}
	request, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(
		"Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json",
	)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(content)
}

const bearer = "Bearer " + token

// errorCode returns the code of an error of the OCI distribution specification.
func errorCode(t testing.TB, body string) string {
	t.Helper()
	var got struct {
		Errors []struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Errors) != 1 || got.Errors[0].Message == "" {
		t.Fatalf("not an error of the specification: %v: %s", err, body)
	}
	return got.Errors[0].Code
}

func (s *server) ref(t testing.TB, s2 string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(s.host + "/" + s2)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (s *server) push(t testing.TB, reference string) v1.Hash {
	t.Helper()
	image, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(s.ref(t, reference), image, remote.WithAuth(user)); err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

var user = &authn.Basic{Username: "any", Password: token}

func basic(password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth("any", password)
	return r.Header.Get("Authorization")
}

func TestWritesNeedTheToken(t *testing.T) {
	s := serve(t, registry.Options{})
	hash := s.push(t, "a/b:v1")
	before := files(t, s.dir)
	writes := []struct{ method, path string }{
		{http.MethodPost, "/v2/a/b/blobs/uploads/"},
		{http.MethodPost, "/v2/c/d/blobs/uploads/?mount=" + hash.String() + "&from=a/b"},
		{http.MethodPatch, "/v2/a/b/blobs/uploads/1"},
		{http.MethodPut, "/v2/a/b/blobs/uploads/1?digest=" + hash.String()},
		{http.MethodPut, "/v2/a/b/manifests/v1"},
		{http.MethodDelete, "/v2/a/b/manifests/v1"},
		{http.MethodDelete, "/v2/a/b/manifests/" + hash.String()},
		{http.MethodDelete, "/v2/a/b/blobs/" + hash.String()},
		{http.MethodDelete, "/v2/a/b/blobs/uploads/1"},
		{http.MethodPut, "//v2/a/b/manifests/v1"},
		{http.MethodPost, "/v2/"},
		{"BREW", "/v2/a/b/manifests/v1"},
	}
	for _, authorization := range []string{
		"", "Bearer anonymous", "Bearer wrong", "Bearer ", "Digest x", basic("wrong"), basic(""), "Basic !",
		basic(token + "x"), "Bearer " + token[1:],
	} {
		for _, w := range writes {
			response, body := s.do(t, w.method, w.path, authorization, strings.NewReader("{}"))
			if response.StatusCode != http.StatusUnauthorized || errorCode(t, body) != "UNAUTHORIZED" {
				t.Errorf("%s %s with %q: %s", w.method, w.path, authorization, response.Status)
			}
			if !strings.Contains(body, "xpkg login 127.0.0.1:15000 --data-dir /data") {
				t.Errorf("the message does not name the command: %s", body)
			}
			if got := response.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `Bearer realm="http://`+s.host+
				`/token"`) {
				t.Errorf("challenge %s", got)
			}
		}
	}
	if diff := cmp.Diff(before, files(t, s.dir)); diff != "" {
		t.Errorf("refused requests changed the images: %s", diff)
	}
	for _, authorization := range []string{bearer, "bearer " + token, basic(token)} {
		if response, _ := s.do(
			t, http.MethodPost, "/v2/a/b/blobs/uploads/", authorization, nil,
		); response.StatusCode != http.StatusAccepted {
			t.Errorf("with %q: %s", authorization, response.Status)
		}
	}
}

// An empty token must not make an empty password right.
func TestRegistryWithoutTokenIsReadOnly(t *testing.T) {
	handler := registry.Handler(http.NotFoundHandler(), registry.Options{Limiter: limit.New(limit.OfProcess(), nil)})
	s := &server{host: strings.TrimPrefix(port.Serve(t, handler).URL, "http://")}
	for _, authorization := range []string{"", "Bearer ", basic(""), "Bearer x"} {
		if response, _ := s.do(
			t, http.MethodPut, "/v2/a/manifests/v1", authorization, nil,
		); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: %s", authorization, response.Status)
		}
	}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			content, failed := os.ReadFile(path)
			all, err = append(all, fmt.Sprintf("%s %s", path, oci.DigestOf(content))), failed
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRepositoriesAreListedToEveryLocalClient also reads the list in pages, and as a web page of another host.
func TestRepositoriesAreListedToEveryLocalClient(t *testing.T) {
	s := serve(t, registry.Options{})
	if response, _ := s.do(t, http.MethodGet, "/v2/_catalog", "", nil); response.StatusCode != http.StatusOK {
		t.Fatalf("an empty registry: %s", response.Status)
	}
	for _, reference := range []string{"a/b:v1", "a/b:v2", "c:v1", "a/b/d:v1"} {
		s.push(t, reference)
	}
	for _, authorization := range []string{"", "Bearer anonymous", basic("stale"), bearer} {
		response, body := s.do(t, http.MethodGet, "/v2/_catalog", authorization, nil)
		if want := `{"repositories":["a/b","a/b/d","c"]}`; response.StatusCode != http.StatusOK ||
			strings.TrimSpace(body) != want {
			t.Errorf("with %q: %s, %s", authorization, response.Status, body)
		}
	}
	client := ociremote.New(ociremote.Options{})
	defer client.Close()
	for prefix, want := range map[string][]string{"": {"a/b", "a/b/d", "c"}, "a": {"a/b", "a/b/d"}, "d": {}} {
		got, err := client.Repositories(t.Context(), s.host, prefix)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("prefix %q: %v\n%s", prefix, err, diff)
		}
	}
	first, body := s.do(t, http.MethodGet, "/v2/_catalog?n=2", "", nil)
	next, _, _ := strings.Cut(strings.TrimPrefix(first.Header.Get("Link"), "<"), ">")
	if _, rest := s.do(t, http.MethodGet, next, "", nil); !strings.Contains(body, `["a/b","a/b/d"]`) ||
		!strings.Contains(rest, `["c"]`) {
		t.Errorf("the pages are %s and %s", body, rest)
	}
	if response, _ := s.do(
		t, http.MethodPut, "/v2/_catalog", bearer, nil,
	); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a write of the list: %s", response.Status)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.host+"/v2/_catalog", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "rebound.example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a request that names another host: %s", response.Status)
	}
}

func TestReadsNeedNoToken(t *testing.T) {
	s := serve(t, registry.Options{})
	hash := s.push(t, "a/b:v1")
	// Credentials of another control plane may be left in the user's configuration.
	for _, authorization := range []string{"", "Bearer anonymous", basic("stale"), basic("")} {
		for _, path := range []string{"/v2/a/b/manifests/v1", "/v2/a/b/manifests/" + hash.String(), "/v2/a/b/tags/list"} {
			if response, _ := s.do(t, http.MethodGet, path, authorization, nil); response.StatusCode != http.StatusOK {
				t.Errorf("%s with %q: %s", path, authorization, response.Status)
			}
		}
	}
}

func TestPingAndTokenServer(t *testing.T) {
	s := serve(t, registry.Options{})
	for authorization, want := range map[string]struct {
		ping, token int
		grants      string
	}{
		"":                 {http.StatusUnauthorized, http.StatusOK, "anonymous"},
		basic(""):          {http.StatusUnauthorized, http.StatusOK, "anonymous"},
		"Bearer anonymous": {http.StatusOK, http.StatusOK, "anonymous"},
		basic(token):       {http.StatusOK, http.StatusOK, token},
		bearer:             {http.StatusOK, http.StatusOK, token},
		basic("wrong"):     {http.StatusUnauthorized, http.StatusUnauthorized, ""},
	} {
		for _, path := range []string{"/v2/", "/v2"} {
			if response, _ := s.do(t, http.MethodGet, path, authorization, nil); response.StatusCode != want.ping {
				t.Errorf("%s with %q: %s", path, authorization, response.Status)
			}
		}
		response, body := s.do(t, http.MethodGet, "/token?service="+s.host+
			"&scope=repository:a/b:pull,push", authorization, nil)
		var got struct{ Token string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || response.StatusCode != want.token ||
			got.Token != want.grants {
			t.Errorf("token with %q: %s %s", authorization, response.Status, body)
		}
	}
	if response, _ := s.do(
		t, http.MethodPost, "/token", basic(token), nil,
	); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("clients that try OAuth2 first must fall back: %s", response.Status)
	}
}

// crane uses this library.
func TestClientsOfGoContainerRegistry(t *testing.T) {
	s := serve(t, registry.Options{})
	hash := s.push(t, "a/b:v1")
	image, err := remote.Image(s.ref(t, "a/b:v1"))
	if err != nil {
		t.Fatalf("an anonymous pull: %v", err)
	}
	if got, err := image.Digest(); err != nil || got != hash {
		t.Errorf("got %s, %v", got, err)
	}
	for what, auth := range map[string]authn.Authenticator{"anonymous": authn.Anonymous, "wrong": &authn.Basic{
		Username: "x", Password: "y",
	}} {
		if err := remote.Write(s.ref(t, "a/b:v2"), image, remote.WithAuth(auth)); err == nil {
			t.Errorf("%s credentials push", what)
		}
		if err := remote.Delete(s.ref(t, "a/b@"+hash.String()), remote.WithAuth(auth)); err == nil {
			t.Errorf("%s credentials delete", what)
		}
	}
	if err := remote.Write(s.ref(t, "c/d:v1"), image, remote.WithAuth(user)); err != nil {
		t.Errorf("a push with mounts: %v", err)
	}
	streamed, err := mutate.AppendLayers(
		image, stream.NewLayer(io.NopCloser(strings.NewReader(strings.Repeat("x", 100_000)))),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(s.ref(t, "c/d:v2"), streamed, remote.WithAuth(user)); err != nil {
		t.Errorf("a push in chunks: %v", err)
	}
	if err := remote.Delete(s.ref(t, "a/b@"+hash.String()), remote.WithAuth(user)); err != nil {
		t.Error(err)
	}
}

// The library of xpkg logs in, pushes and pulls.
func TestXpkgClientPushesAndPulls(t *testing.T) {
	s := serve(t, registry.Options{})
	s.push(t, "a/b:v1")
	for what, c := range map[string]struct {
		auth authn.Authenticator
		want bool
	}{"right": {user, true}, "wrong": {&authn.Basic{Username: "x", Password: "y"}, false},
		"none": {authn.Anonymous, false}} {
		client := ociremote.New(ociremote.Options{Keychain: keychain{c.auth}})
		defer client.Close()
		if err := client.Ping(t.Context(), s.host); (err == nil) != (c.want || what == "none") {
			t.Errorf("%s credentials: ping: %v", what, err)
		}
		ref := oci.MustParseReference(s.host + "/a/b:v1")
		if _, err := client.Resolve(t.Context(), ref); err != nil {
			t.Errorf("%s credentials: %v", what, err)
		}
		image, err := image.BuildExtensions(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Push(t.Context(), ref.WithTag(what), image)
		if (err == nil) != c.want {
			t.Errorf("%s credentials: push: %v", what, err)
		}
		if !c.want && !strings.Contains(err.Error(), "xpkg login 127.0.0.1:15000 --data-dir /data") {
			t.Errorf("the error does not name the command: %v", err)
		}
	}
}

type keychain struct{ authn.Authenticator }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) { return k.Authenticator, nil }

func TestSkopeo(t *testing.T) {
	program, err := exec.LookPath("skopeo")
	if err != nil {
		prerequisite.Missing(t, "skopeo is not installed: apt-get install skopeo")
	}
	s := serve(t, registry.Options{})
	hash := s.push(t, "a/b:v1")
	work := t.TempDir()
	login := filepath.Join(work, "auth.json")
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := layout.Write(filepath.Join(work, "image"), mutate.AppendManifests(index(t), mutate.IndexAddendum{
		Add: image,
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		fails bool
		args  []string
	}{
		{false, []string{"inspect", "--raw", "--tls-verify=false", "docker://" + s.host + "/a/b:v1"}},
		{true, []string{"copy", "--dest-tls-verify=false", "oci:" + string(folder), "docker://" + s.host + "/a/b:v2"}},
		{true, []string{"login", "--tls-verify=false", "-u", "xpkg", "-p", "wrong", s.host}},
		{false, []string{"login", "--tls-verify=false", "-u", "xpkg", "-p", token, s.host}},
		{false, []string{"copy", "--dest-tls-verify=false", "oci:" + string(folder), "docker://" + s.host + "/a/b:v2"}},
		{false, []string{
			"copy", "--src-tls-verify=false", "docker://" + s.host + "/a/b:v2", "dir:" + filepath.Join(work, "out"),
		}},
		{false, []string{"delete", "--tls-verify=false", "docker://" + s.host + "/a/b@" + hash.String()}},
	} {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--insecure-policy"}, step.args...)...)
		cmd.Env = append(os.Environ(), "REGISTRY_AUTH_FILE="+login, "HOME="+work, "XDG_RUNTIME_DIR="+work)
		out, err := cmd.CombinedOutput()
		if (err != nil) != step.fails {
			t.Errorf("skopeo %q: %v\n%s", step.args, err, out)
		}
	}
}

func index(t testing.TB) v1.ImageIndex {
	t.Helper()
	index, err := random.Index(10, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// uploadFiles returns the files of unfinished uploads.
func (s *server) uploadFiles(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "a", "b", "_uploads", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *server) begin(t testing.TB) string {
	t.Helper()
	response, _ := s.do(t, http.MethodPost, "/v2/a/b/blobs/uploads/", bearer, nil)
	if response.StatusCode != http.StatusAccepted {
		t.Fatal(response.Status)
	}
	return "http://" + s.host + response.Header.Get("Location")
}

// An endless body has no length, and more bytes than any limit.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func TestUploadsHaveALimit(t *testing.T) {
	const most = 100_000
	s := serve(t, registry.Options{MaxUpload: most})
	content := bytes.Repeat([]byte("x"), most)
	sum := "&digest=" + oci.DigestOf(content).String()

	response, body := s.do(t, http.MethodPut, s.begin(t)+sum, bearer, bytes.NewReader(content))
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("a blob as large as the limit: %s %s", response.Status, body)
	}
	chunk := func(location string, n int) (*http.Response, string) {
		return s.do(t, http.MethodPatch, location, bearer, bytes.NewReader(content[:n]))
	}
	large := bytes.Repeat([]byte("y"), most+1)
	for what, upload := range map[string]func() (*http.Response, string){
		"in one piece": func() (*http.Response, string) {
			return s.do(t, http.MethodPut, s.begin(t)+"&digest="+oci.DigestOf(large).String(), bearer, bytes.NewReader(large))
		},
		"without a length": func() (*http.Response, string) {
			return s.do(t, http.MethodPatch, s.begin(t), bearer, io.LimitReader(&endless{}, 10*most))
		},
		"in chunks": func() (*http.Response, string) {
			location := s.begin(t)
			for range 2 {
				response, _ := chunk(location, most/2)
				if response.StatusCode != http.StatusAccepted {
					t.Fatal(response.Status)
				}
				location = "http://" + s.host + response.Header.Get("Location")
			}
			return chunk(location, 1)
		},
		"in chunks and a last one": func() (*http.Response, string) {
			response, _ := chunk(s.begin(t), most/2)
			return s.do(t, http.MethodPut, "http://"+s.host+response.Header.Get("Location")+sum, bearer, bytes.NewReader(large))
		},
	} {
		response, body := upload()
		if response.StatusCode != http.StatusRequestEntityTooLarge || errorCode(t, body) != "DENIED" ||
			!strings.Contains(body, "--max-upload-size") {
			t.Errorf("%s: %s %s", what, response.Status, body)
		}
		if left := s.uploadFiles(t); len(left) != 0 {
			t.Errorf("%s: left %v", what, left)
		}
	}
	// The body of a single POST is not read; the client is asked for a PUT.
	response, _ = s.do(t, http.MethodPost, "/v2/a/b/blobs/uploads/?digest="+
		oci.DigestOf(large).String(), bearer, bytes.NewReader(large))
	if response.StatusCode != http.StatusAccepted || response.Header.Get("Location") == "" {
		t.Errorf("a single POST: %s", response.Status)
	}
	response, _ = s.do(t, http.MethodPut, "http://"+s.host+response.Header.Get("Location")+
		sum, bearer, bytes.NewReader(content))
	if response.StatusCode != http.StatusCreated {
		t.Errorf("the PUT after it: %s", response.Status)
	}
}

func TestMovedTagOfInstalledPackageIsReported(t *testing.T) {
	uses := []registry.Use{
		{Package: "provider/follows", Repository: "a/b", Tag: "v1", Follows: true},
		{Package: "provider/stays", Repository: "a/b", Tag: "v1"},
		{Package: "provider/other-tag", Repository: "a/b", Tag: "v2"},
		{Package: "provider/other-repository", Repository: "a/c", Tag: "v1"},
	}
	s := serve(t, registry.Options{Uses: func(context.Context, string) ([]registry.Use, error) { return uses, nil }})
	first := s.push(t, "a/b:v1")
	s.push(t, "a/b:v3")
	s.push(t, "a/b:v3")
	if len(s.reports) != 0 {
		t.Fatalf("reported %q, though no installed tag moved", s.reports)
	}
	uses = append(uses, registry.Use{Package: "function/pinned", Repository: "a/b", Tag: "v1", Digest: first.String()})

	var warned []string
	client := ociremote.New(ociremote.Options{Keychain: keychain{user}, Warn: func(host, message string) {
		if host == s.host {
			warned = append(warned, message)
		}
	}})
	defer client.Close()
	image, err := image.BuildExtensions(nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Push(t.Context(), oci.MustParseReference(s.host+"/a/b:v1"), image)
	if err != nil {
		t.Fatal(err)
	}
	moved := fmt.Sprintf(
		" is installed from %s/a/b:v1, which moved from %s to %s; ", s.host, short(first.String()), second.Short(),
	)
	want := []string{
		"provider/follows" + moved + "the package is updated, because its packagePullPolicy is Always",
		"provider/stays" + moved +
			"the package keeps the old content until its spec changes. Push a new version under a new tag instead",
	}
	if diff := cmp.Diff(want, s.reports); diff != "" {
		t.Errorf("reports: %s", diff)
	}
	if diff := cmp.Diff(want, warned); diff != "" {
		t.Errorf("warnings: %s", diff)
	}
	// The same content again is no move.
	s.reports = nil
	if _, err := client.Push(t.Context(), oci.MustParseReference(s.host+"/a/b:v1"), image); err != nil ||
		len(s.reports) != 0 {
		t.Errorf("got %v, %q", err, s.reports)
	}
	// A deletion by digest deletes the tags.
	if response, _ := s.do(t, http.MethodDelete, "/v2/a/b/manifests/"+
		second.String(), bearer, nil); response.StatusCode != http.StatusAccepted {
		t.Fatal(response.Status)
	}
	if len(s.reports) != 2 || !strings.Contains(s.reports[0], "provider/follows is installed from") ||
		!strings.Contains(s.reports[1], "was deleted") {
		t.Errorf("deletion by digest: %q", s.reports)
	}
	s.reports = nil
	response, _ := s.do(t, http.MethodDelete, "/v2/a/b/manifests/"+first.String(), bearer, nil)
	if response.StatusCode != http.StatusAccepted || len(s.reports) != 1 ||
		!strings.HasPrefix(s.reports[0], "function/pinned") {
		t.Errorf("deletion of a pinned digest: %s, %q", response.Status, s.reports)
	}
	uses = append(uses, registry.Use{Package: "provider/third", Repository: "a/b", Tag: "v3"})
	s.reports = nil
	response, _ = s.do(t, http.MethodDelete, "/v2/a/b/manifests/v3", bearer, nil)
	if len(s.reports) != 1 || !strings.HasPrefix(response.Header.Get("Warning"), `299 - "provider/third`) {
		t.Errorf("deletion of a tag: %q, %v", s.reports, response.Header)
	}
}

func short(d string) string {
	parsed, err := oci.ParseDigest(d)
	if err != nil {
		return d
	}
	return parsed.Short()
}

// A push succeeds if the packages cannot be listed, and the user is warned.
func TestPushWhileThePackagesAreUnknown(t *testing.T) {
	s := serve(t, registry.Options{Uses: func(context.Context, string) ([]registry.Use, error) {
		return nil, fmt.Errorf("the API server\nis \"away\"")
	}})
	s.push(t, "a/b:v1")
	s.push(t, "a/b:v1")
	if len(s.reports) != 1 ||
		!strings.HasPrefix(s.reports[0], "cannot check whether an installed package refers to "+s.host+"/a/b:v1") {
		t.Errorf("reports %q", s.reports)
	}
}
