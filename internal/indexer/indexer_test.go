package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// server is a registry that counts requests.
type server struct {
	host     string
	requests atomic.Int64
	bytes    atomic.Int64
	// change, if set, can replace a request's handling. It returns true if it did.
	change func(w http.ResponseWriter, r *http.Request) bool
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	served := port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if s.change != nil && s.change(w, r) {
			return
		}
		images.ServeHTTP(&countingWriter{w, s}, r)
	}))
	s.host = strings.TrimPrefix(served.URL, "http://")
	return s
}

type countingWriter struct {
	http.ResponseWriter
	s *server
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.s.bytes.Add(int64(n))
	return n, err
}

// machine is a machine with its own package cache.
type machine struct {
	Options
}

func newMachine(t testing.TB, transport http.RoundTripper) *machine {
	t.Helper()
	cache, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := remote.Options{
		Transport: transport, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Attempts: 1,
	}
	m := &machine{Options{
		Remote: remote.New(o), Store: cache, Source: fetch.NewSource(fetch.Options{Remote: o, Store: cache}), Parallel: 4,
	}}
	t.Cleanup(func() {
		m.Source.Close()
		m.Remote.Close()
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (m *machine) client() *Client {
	return &Client{Remote: m.Remote, Store: m.Store, Now: func() time.Time { return day(1) }}
}

func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

// stream is the package.yaml of a Provider.
func stream(name string, kinds ...string) []byte {
	text := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\n"
	for _, k := range kinds {
		text += publish.Definition(name+".example.org", k, "one")
	}
	return []byte(text)
}

// push publishes a version of a package, with an index layer or without.
func (s *server) push(t testing.TB, name, tag string, layer bool, kinds ...string) oci.Digest {
	t.Helper()
	in := image.Input{PackageYAML: stream(name, kinds...), Annotations: map[string]string{
		annotationCreated: day(1).Format(time.RFC3339), "tag": tag,
	}}
	if layer {
		extra, err := indexlayer.Build(in.PackageYAML, xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		in.Extra = []image.ExtraLayer{extra}
	}
	built, err := image.Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return s.pushArtifact(t, s.ref(name, tag), built)
}

func (s *server) ref(name, tag string) oci.Reference {
	return oci.MustParseReference(s.host + "/acme/" + name + ":" + tag)
}

func (s *server) pushArtifact(t testing.TB, ref oci.Reference, a oci.Artifact) oci.Digest {
	t.Helper()
	client := remote.New(remote.Options{})
	defer client.Close()
	d, err := client.Push(t.Context(), ref, a)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *server) config(names ...string) catalog.Config {
	var repositories []string
	for _, n := range names {
		repositories = append(repositories, s.host+"/acme/"+n)
	}
	return catalog.Config{Name: "test", Sources: []catalog.Source{{
		Kind: catalog.SourceRepositories, Repositories: repositories,
	}}}
}

func build(t testing.TB, m *machine, config catalog.Config) catalog.Catalog {
	t.Helper()
	c, err := NewBuilder(m.Options).Build(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publishAt publishes a catalog, as a continuation of the former state if there is one.
func publishAt(
	t *testing.T, m *machine, ref oci.Reference, c catalog.Catalog, former *catalog.Reader, at, expires time.Time,
) *catalog.Reader {
	t.Helper()
	p := Publishing{Former: former, Catalog: c, Created: at, Expires: expires}
	if former != nil {
		content, err := former.Catalog()
		if err != nil {
			t.Fatal(err)
		}
		p.FormerCatalog = &content
	}
	image, _, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), m.Remote, ref, &image, former); err != nil {
		t.Fatal(err)
	}
	r, err := m.client().Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBuildTakesTwoRequestsForEachVersionWithAnIndexLayer(t *testing.T) {
	s := newServer(t)
	const versions = 5
	for i := range versions {
		s.push(t, "one", fmt.Sprintf("v1.%d.0", i), true, "Bucket", fmt.Sprintf("Kind%d", i))
	}
	m := newMachine(t, nil)
	s.requests.Store(0)
	c := build(t, m, s.config("one"))
	if n := s.requests.Load(); n > 2*versions+2 { // the ping and the list of tags
		t.Errorf("%d requests for %d versions", n, versions)
	}
	if len(c.Kinds) != 2 || c.Packages[0].Latest != "v1.4.0" || c.Packages[0].Updated != day(1) {
		t.Errorf("got %+v", c.Packages)
	}
	s.requests.Store(0)
	build(t, m, s.config("one"))
	if n := s.requests.Load(); n > versions+2 {
		t.Errorf("%d requests for known content", n)
	}
}

func TestIndexIsTheSameOnTwoMachinesAndWithoutIndexLayers(t *testing.T) {
	s := newServer(t)
	for i := range 3 {
		s.push(t, "one", fmt.Sprintf("v1.%d.0", i), i%2 == 0, "Bucket", "Role")
	}
	s.push(t, "two", "v0.1.0-rc.1", true, "User")
	config := s.config("one", "two")
	var manifests [][]byte
	for range 2 {
		c := build(t, newMachine(t, nil), config)
		image, _, err := (&Publishing{Catalog: c, Created: day(1)}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, image.Manifest.Raw)
	}
	if !bytes.Equal(manifests[0], manifests[1]) {
		t.Error("two machines build different indexes")
	}
}

// A mirror keeps the content of a version that its publisher has removed, and has its status.
// TestAnUnreadableVersionHasItsStatus builds and updates an index of a package with versions that cannot be read,
// because they have no layers or no image.
func TestAnUnreadableVersionHasItsStatus(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	for tag, raw := range map[string]string{
		"v1.1.0": `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}`,
		"v1.2.0": `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`,
	} {
		s.pushArtifact(t, s.ref("one", tag), unreadable(raw))
	}
	before := build(t, m, s.config("one"))
	check := func(what string, c *catalog.Catalog) {
		t.Helper()
		for _, v := range c.History(s.ref("one", "v1.0.0").Name()).Versions {
			if isUnreadable := v.Tag != "v1.0.0"; isUnreadable != (v.Status != nil && v.Status.State == catalog.Yanked) ||
				isUnreadable != (v.Error != nil) {
				t.Errorf("%s: %s has the status %+v and the error %+v", what, v.Tag, v.Status, v.Error)
			}
		}
	}
	for _, tag := range []string{"v1.1.0", "v1.2.0"} {
		if _, err := packagestatus.Write(t.Context(), m.Remote, s.ref("one", tag), catalog.Status{
			State: catalog.Yanked, Reason: catalog.Broken,
		}); err != nil {
			t.Fatal(err)
		}
	}
	built := build(t, newMachine(t, nil), s.config("one"))
	check("built", &built)
	updated, _, err := NewBuilder(m.Options).Update(t.Context(), &before, before.Config)
	if err != nil {
		t.Fatal(err)
	}
	check("updated", &updated)
}

// unreadable is a manifest that is no package.
type unreadable string

// Root implements [oci.Artifact].
func (u unreadable) Root() oci.Descriptor {
	mediaType := oci.MediaTypeOCIIndex
	if strings.Contains(string(u), string(oci.MediaTypeOCIManifest)) {
		mediaType = oci.MediaTypeOCIManifest
	}
	return oci.Descriptor{MediaType: mediaType, Digest: oci.DigestOf([]byte(u)), Size: int64(len(u))}
}

// Open implements [oci.Artifact].
func (u unreadable) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.Digest == u.Root().Digest {
		return io.NopCloser(strings.NewReader(string(u))), nil
	}
	return io.NopCloser(strings.NewReader("{}")), nil
}

func TestARemovedVersionWhoseTagExistsHasItsStatus(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	s.push(t, "one", "v1.1.0", true, "Role")
	m := newMachine(t, nil)
	before := build(t, m, s.config("one"))
	write := func(state catalog.State) {
		t.Helper()
		status := catalog.Status{State: state, Reason: catalog.Security, Since: day(2)}
		if _, err := packagestatus.Write(t.Context(), m.Remote, s.ref("one", "v1.1.0"), status); err != nil {
			t.Fatal(err)
		}
	}
	check := func(c *catalog.Catalog, latest string, removed bool) {
		t.Helper()
		h := c.History(s.ref("one", "v1.1.0").Name())
		i := slices.IndexFunc(h.Versions, func(v catalog.Version) bool { return v.Tag == "v1.1.0" })
		if c.Packages[0].Latest != latest || len(h.Versions) != 2 ||
			(h.Versions[i].Status != nil && h.Versions[i].Status.State == catalog.Removed) != removed {
			t.Errorf("the newest version is %s of %+v", c.Packages[0].Latest, h.Versions)
		}
	}
	write(catalog.Removed)
	built := build(t, newMachine(t, nil), s.config("one"))
	check(&built, "v1.0.0", true)
	updated, _, err := NewBuilder(m.Options).Update(t.Context(), &before, before.Config)
	if err != nil {
		t.Fatal(err)
	}
	check(&updated, "v1.0.0", true)
	write(catalog.Available)
	updated, _, err = NewBuilder(m.Options).Update(t.Context(), &updated, before.Config)
	if err != nil {
		t.Fatal(err)
	}
	check(&updated, "v1.1.0", false)
}

func TestPackageThatCannotBeReadIsListedAndAffectsNoOther(t *testing.T) {
	s := newServer(t)
	s.push(t, "good", "v1.0.0", true, "Bucket")
	notPackage, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("not: [a package")})
	if err != nil {
		t.Fatal(err)
	}
	s.pushArtifact(t, s.ref("bad", "v1.0.0"), notPackage)
	s.push(t, "fallback", "v1.0.0", true, "Role")
	s.pushArtifact(t, s.ref("fallback", "v2.0.0"), notPackage)
	c := build(t, newMachine(t, nil), s.config("good", "bad", "fallback", "absent"))
	want := map[string]string{"good": "", "bad": "InvalidYAML", "fallback": "InvalidYAML", "absent": "RepositoryNotFound"}
	for _, p := range c.Packages {
		name := p.Repository[strings.LastIndexByte(p.Repository, '/')+1:]
		code := ""
		if p.Error != nil {
			code = p.Error.Code
		}
		if (code == "") != (want[name] == "") {
			t.Errorf("%s: got %+v, want %s", name, p.Error, want[name])
		}
		if name == "fallback" && p.Latest != "v1.0.0" {
			t.Errorf("the newest version that can be read is %s", p.Latest)
		}
	}
	if len(c.Packages) != 4 {
		t.Errorf("got %+v", c.Packages)
	}
}

func TestUpdateEqualsRebuildAndCostsLittle(t *testing.T) {
	s := newServer(t)
	for i := range 3 {
		s.push(t, "one", fmt.Sprintf("v1.%d.0", i), true, "Bucket", "Role")
		s.push(t, "two", fmt.Sprintf("v1.%d.0", i), true, "User")
	}
	m, reader := newMachine(t, nil), newMachine(t, nil)
	config := s.config("one", "two")
	ref := s.ref("index", "main")
	r := publishAt(t, m, ref, build(t, m, config), nil, day(1), time.Time{})
	if _, err := reader.client().Open(t.Context(), ref); err != nil {
		t.Fatal(err)
	}

	s.requests.Store(0)
	s.bytes.Store(0)
	if _, err := reader.client().Open(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if n, size := s.requests.Load(), s.bytes.Load(); n > 2 || size > 100 { // the first one negotiates the access
		t.Errorf("a client that is up to date makes %d requests and receives %d bytes", n, size)
	} else {
		t.Attr("unchanged-bytes", strconv.FormatInt(size, 10))
	}

	s.push(t, "one", "v1.3.0", true, "Bucket", "Policy")
	content, err := r.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	s.requests.Store(0)
	next, problems, err := NewBuilder(m.Options).Update(t.Context(), &content, r.Config())
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if n := s.requests.Load(); n > 2+2 {
		t.Errorf("an update with one new version takes %d requests", n)
	}
	rebuilt := build(t, newMachine(t, nil), config)
	ignore := cmpopts.IgnoreFields(catalog.Catalog{}, "Config")
	if d := cmp.Diff(
		rebuilt, next, cmpopts.EquateEmpty(), ignore, cmp.Comparer(func(a, b oci.Digest) bool { return a == b }),
	); d != "" {
		t.Fatalf("-rebuilt +updated:\n%s", d)
	}
	publishAt(t, m, ref, next, r, day(2), time.Time{})
	s.bytes.Store(0)
	updated, err := reader.client().Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if size := s.bytes.Load(); size > 24<<10 {
		t.Errorf("one new version costs a client %d bytes", size)
	}
	if kinds, err := updated.Lookup("", "policy"); err != nil || len(kinds) != 1 {
		t.Errorf("the new kind is not found: %v %v", kinds, err)
	}
	got, err := updated.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(
		rebuilt, got, cmpopts.EquateEmpty(), ignore, cmp.Comparer(func(a, b oci.Digest) bool { return a == b }),
	); d != "" {
		t.Errorf("-rebuilt +read:\n%s", d)
	}
}

func TestUpdateKeepsPackagesOfAnUnavailableRepository(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	config := s.config("one")
	c := build(t, m, config)
	s.change = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/tags/list") {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		return false
	}
	next, problems, err := NewBuilder(m.Options).Update(t.Context(), &c, config)
	if err != nil || len(problems) != 1 {
		t.Fatal(problems, err)
	}
	if len(next.Kinds) != 1 {
		t.Errorf("the package is lost: %+v", next.Packages)
	}
}

// A registry whose storage fails can list nothing. An update must not take all packages out of the index then.
func TestUpdateKeepsTheIndexOfARegistryThatListsNothing(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	config := catalog.Config{Name: "test", Sources: []catalog.Source{{
		Kind: catalog.SourceRegistry, Location: s.host + "/acme",
	}}}
	c := build(t, m, config)
	answer := func(suffix, body string, status int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, suffix) {
				return false
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for name, change := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"no repositories": answer("/_catalog", `{"repositories": []}`, http.StatusOK),
		"no tags":         answer("/tags/list", `{"tags": null}`, http.StatusOK),
		"no repository":   answer("/tags/list", `{}`, http.StatusNotFound),
	} {
		s.change = change
		if _, _, err := NewBuilder(m.Options).Update(t.Context(), &c, config); !errors.Is(err, ErrEmptySource) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.change = nil
	s.push(t, "two", "v1.0.0", true, "Table")
	if next, _, err := NewBuilder(m.Options).Update(t.Context(), &c, config); err != nil || len(next.Packages) != 2 {
		t.Errorf("the registry lists two packages: %+v, %v", next.Packages, err)
	}
}

// An update that cannot check whether a known tag has moved reports it.
func TestUpdateReportsTagsThatItCannotCheck(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	m.Moved = true
	config := s.config("one")
	c := build(t, m, config)
	s.change = func(w http.ResponseWriter, r *http.Request) bool {
		fails := strings.Contains(r.URL.Path, "/manifests/")
		if fails {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return fails
	}
	next, problems, err := NewBuilder(m.Options).Update(t.Context(), &c, config)
	if err != nil || len(problems) != 1 || len(next.Kinds) != 1 {
		t.Errorf("%d kinds, problems %v, error %v", len(next.Kinds), problems, err)
	}
}

// With the digests of all tags at once, an update of a repository in which nothing has changed costs one request,
// whatever number of statuses it has, and another one for a changed status.
func TestUpdateReadsEachStatusOnce(t *testing.T) {
	s := newServer(t)
	for _, tag := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
		s.push(t, "one", tag, true, "Bucket", "In"+strings.ReplaceAll(tag, ".", ""))
	}
	m := newMachine(t, nil)
	yank := func(tag, message string) {
		t.Helper()
		if _, err := packagestatus.Write(t.Context(), m.Remote, s.ref("one", tag), catalog.Status{
			State: catalog.Yanked, Message: message,
		}); err != nil {
			t.Fatal(err)
		}
	}
	yank("v1.0.0", "first")
	yank("v1.1.0", "first")
	m.Moved = true
	m.Digests = func(repository string) (map[string]oci.Digest, error) {
		requests := s.requests.Load()
		defer func() { s.requests.Store(requests) }()
		ref := oci.MustParseReference(s.host + "/" + repository + ":latest")
		tags, err := m.Remote.Tags(t.Context(), ref)
		found := map[string]oci.Digest{}
		for _, tag := range tags {
			if d, err := m.Remote.Resolve(t.Context(), ref.WithTag(tag)); err == nil {
				found[tag] = d.Digest
			}
		}
		return found, err
	}
	config := s.config("one")
	c := build(t, m, config)
	update := func() (requests int64) {
		t.Helper()
		before := s.requests.Load()
		next, problems, err := NewBuilder(m.Options).Update(t.Context(), &c, config)
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		c = next
		return s.requests.Load() - before
	}
	update()
	if n := update(); n != 1 {
		t.Errorf("an update without a change costs %d requests", n)
	}
	yank("v1.1.0", "second")
	if n := update(); n > 3 {
		t.Errorf("an update with a changed status costs %d requests", n)
	}
	for tag, message := range map[string]string{"v1.0.0": "first", "v1.1.0": "second"} {
		if v := c.History(c.Packages[0].Repository).Find(tag); v == nil || v.Status == nil || v.Status.Message != message {
			t.Errorf("%s: %+v", tag, v)
		}
	}
}

// killed is a transport that ends after a number of requests, as a killed process does.
type killed struct {
	next http.RoundTripper
	left atomic.Int64
	stop context.CancelFunc
}

func (k *killed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.left.Add(-1) < 0 {
		k.stop()
		return nil, context.Canceled
	}
	return k.next.RoundTrip(r)
}

func TestBuildThatIsKilledAtAnyCallLeavesTheOldOrTheNewIndex(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	s.push(t, "two", "v1.0.0", false, "Role")
	config := s.config("one", "two")
	ref := s.ref("index", "main")
	first := newMachine(t, nil)
	old := publishAt(t, first, ref, build(t, first, config), nil, day(1), time.Time{})
	s.push(t, "one", "v1.1.0", true, "Bucket", "Policy")
	done := false
	for calls := int64(0); !done && calls < 200; calls++ {
		ctx, cancel := context.WithCancel(t.Context())
		transport := &killed{next: http.DefaultTransport, stop: cancel}
		transport.left.Store(calls)
		m := newMachine(t, transport)
		done = update(ctx, m, ref, config) == nil
		cancel()
		r, err := newMachine(t, nil).client().Open(t.Context(), ref)
		if err != nil {
			t.Fatalf("after %d calls: %v", calls, err)
		}
		c, err := r.Catalog()
		if err != nil {
			t.Fatalf("after %d calls: %v", calls, err)
		}
		if isNew := len(c.Kinds) == 3; !isNew && r.Manifest().Digest != old.Manifest().Digest || done && !isNew {
			t.Fatalf("after %d calls the index has %d kinds and the digest %s", calls, len(c.Kinds), r.Manifest().Digest)
		}
	}
	if !done {
		t.Error("the update never succeeds")
	}
}

// update updates an index as the command does.
func update(ctx context.Context, m *machine, ref oci.Reference, config catalog.Config) error {
	former, err := m.client().Open(ctx, ref)
	if err != nil {
		return err
	}
	content, err := former.Catalog()
	if err != nil {
		return err
	}
	config.Shards = former.Config().Shards
	next, problems, err := NewBuilder(m.Options).Update(ctx, &content, config)
	if err != nil || len(problems) > 0 {
		return errors.Join(err, errors.New(fmt.Sprint(problems)))
	}
	image, _, err := (&Publishing{Former: former, FormerCatalog: &content, Catalog: next, Created: day(2)}).Encode()
	if err != nil {
		return err
	}
	return Publish(ctx, m.Remote, ref, &image, former)
}

func TestWrongStatesOfAnIndexAreRefusedWithTheirCodes(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	config := s.config("one")
	m := newMachine(t, nil)
	c := build(t, m, config)
	next := c
	next.Packages = slices.Clone(c.Packages)
	next.Packages[0].Title = "One"
	state := func(
		name string, c catalog.Catalog, former *catalog.Reader, created, expires int,
	) (oci.Reference, *catalog.Reader) {
		ref := s.ref("states", name)
		if former != nil { // The state continues a former one under another tag.
			copyTag(t, s, former, ref)
		}
		var end time.Time
		if expires > 0 {
			end = day(expires)
		}
		return ref, publishAt(t, newMachine(t, nil), ref, c, former, day(created), end)
	}
	one, first := state("one", c, nil, 1, 0)
	two, second := state("two", next, first, 2, 0)
	fork, _ := state("fork", next, first, 3, 0)
	three, _ := state("three", c, second, 4, 0)
	other, forkedFirst := state("other", next, nil, 5, 0)
	_ = other
	forkedTwo, _ := state("forkedtwo", c, forkedFirst, 6, 0)

	for name, tc := range map[string]struct {
		seen, then oci.Reference
		code       errcode.Code
	}{
		"next":                   {one, two, errcode.Code{}},
		"jump":                   {one, three, errcode.Code{}},
		"replayed":               {two, one, ErrStaleIndex},
		"forked":                 {two, fork, ErrForkedIndex},
		"fork as the next state": {one, forkedTwo, ErrForkedIndex},
		"fork behind a jump":     {fork, three, ErrForkedIndex},
	} {
		t.Run(name, func(t *testing.T) {
			client := newMachine(t, nil).client()
			ref := s.ref("served", strings.ReplaceAll(name, " ", "-"))
			served := func(from oci.Reference) error {
				r, err := m.client().Open(t.Context(), from)
				if err != nil {
					t.Fatal(err)
				}
				copyTag(t, s, r, ref)
				_, err = client.Open(t.Context(), ref)
				return err
			}
			if err := served(tc.seen); err != nil {
				t.Fatal(err)
			}
			err := served(tc.then)
			if tc.code.Name == "" && err != nil || tc.code.Name != "" && !errors.Is(err, tc.code) {
				t.Errorf("got %v, want %s", err, tc.code.Name)
			}
			if tc.code.Name == "" {
				return
			}
			if do := errcode.From(err).Do; !strings.Contains(do, "`xpkg index show "+ref.String()+" --forget`") {
				t.Errorf("the advice does not name the command: %s", do)
			}
			if err := client.Forget(ref); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Open(t.Context(), ref); err != nil {
				t.Errorf("after Forget: %v", err)
			}
		})
	}
	t.Run("expired", func(t *testing.T) {
		ref, _ := state("expiring", c, nil, 1, 9)
		client := newMachine(t, nil).client()
		client.Now = func() time.Time { return day(10) }
		if _, err := client.Open(t.Context(), ref); !errors.Is(err, ErrExpiredIndex) {
			t.Errorf("got %v", err)
		}
	})
	for code, spoil := range map[errcode.Code]func([]byte) []byte{
		catalog.ErrTruncatedIndex: func(b []byte) []byte { return b[:len(b)-3] },
		catalog.ErrMixedIndex:     func(b []byte) []byte { return append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1) },
	} {
		t.Run(code.Name, func(t *testing.T) {
			kinds := second.Manifest().Kinds
			data, err := second.Blob(kinds)
			if err != nil {
				t.Fatal(err)
			}
			s.change = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, kinds.Digest.String()) {
					return false
				}
				_, _ = w.Write(spoil(data))
				return true
			}
			defer func() { s.change = nil }()
			if _, err := newMachine(t, nil).client().Open(t.Context(), two); !errors.Is(err, code) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// copyTag pushes a state of an index under another tag.
func copyTag(t *testing.T, s *server, r *catalog.Reader, to oci.Reference) {
	t.Helper()
	m := r.Manifest()
	s.pushArtifact(t, to, newArtifact(&catalog.Image{Manifest: m}, r))
}

func TestClientWorksWithoutItsRegistryOnceItHasTheIndex(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	ref := s.ref("index", "main")
	publishAt(t, m, ref, build(t, m, s.config("one")), nil, day(1), time.Time{})
	s.change = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	warned := 0
	for _, offline := range []bool{false, true} {
		client := m.client()
		client.Offline, client.Warn = offline, func(error) { warned++ }
		r, err := client.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if kinds, err := r.Lookup("", "bucket"); err != nil || len(kinds) != 1 {
			t.Errorf("got %v, %v", kinds, err)
		}
	}
	if warned != 1 {
		t.Errorf("%d warnings", warned)
	}
	client := newMachine(t, nil).client()
	client.Offline = true
	if _, err := client.Open(t.Context(), ref); !errors.Is(err, oci.ErrBlobNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestRegistryThatListsIsASource(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	config := catalog.Config{Name: "test", Sources: []catalog.Source{{
		Kind: catalog.SourceRegistry, Location: s.host + "/acme",
	}}}
	c := build(t, m, config)
	ref := s.ref("index", "main")
	publishAt(t, m, ref, c, nil, day(1), time.Time{})
	if c = build(t, m, config); len(c.Packages) != 1 || len(c.Kinds) != 1 {
		t.Errorf("got %+v", c.Packages)
	}
	from := catalog.Config{Name: "other", Sources: []catalog.Source{{Kind: catalog.SourceIndex, Location: ref.String()}}}
	if c = build(t, m, from); len(c.Packages) != 1 || len(c.Kinds) != 1 {
		t.Errorf("from another index: %+v", c.Packages)
	}
	from.Sources[0] = catalog.Source{Kind: catalog.SourceRegistry, Location: s.host + "/none"}
	if c = build(t, m, from); len(c.Packages) != 0 {
		t.Errorf("below another prefix: %+v", c.Packages)
	}
}

func TestSetPrefersTheIndexWithTheHighestPriority(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	s.push(t, "two", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	low := publishAt(t, m, s.ref("low", "main"), build(t, m, s.config("one", "two")), nil, day(1), time.Time{})
	titled := build(t, m, s.config("two"))
	titled.Packages[0].Title = "Preferred"
	high := publishAt(t, m, s.ref("high", "main"), titled, nil, day(1), time.Time{})
	set := Set{{Location: "low", Reader: low}, {Location: "high", Priority: 5, Reader: high}}
	set.Sort()
	hits, err := set.Search(catalog.Query{Kind: "Bucket"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) != 2 || hits[0].Package.Title != "Preferred" {
		t.Errorf("got %+v", hits)
	}
	// The hit of the second index for a package of the first one does not count for the limit.
	for limit := 1; limit <= 3; limit++ {
		if hits, err := set.Search(catalog.Query{Kind: "Bucket"}, limit); err != nil || len(hits) != min(limit, 2) {
			t.Errorf("limit %d: %+v, %v", limit, hits, err)
		}
	}
	kinds, err := set.Lookup("", "bucket")
	if err != nil || len(kinds) != 2 {
		t.Errorf("got %v, %v", kinds, err)
	}
	if p, in := set.Package(titled.Packages[0].Repository); p == nil || in.Location != "high" {
		t.Errorf("got %v", p)
	}
}

func TestParseLocation(t *testing.T) {
	for text, want := range map[string]int{"a/b:c": 0, "a/b:c,5": 5, "a/b:c, -3": -3} {
		if location, priority, err := ParseLocation(text); location != "a/b:c" || priority != want || err != nil {
			t.Errorf("%q: %q, %d, %v", text, location, priority, err)
		}
	}
	for _, text := range []string{"a,b", "a,", "a,99999"} {
		if _, _, err := ParseLocation(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestADamagedStateIsReplaced publishes a state whose configuration belongs to another snapshot, and then one that
// continues its sequence without its content.
func TestADamagedStateIsReplaced(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m, ref := newMachine(t, nil), s.ref("index", "main")
	if got := ReadReplaced(t.Context(), m.Remote, ref); got != (Replaced{}) {
		t.Errorf("an index that does not exist: %+v", got)
	}
	content := build(t, m, s.config("one"))
	first := publishAt(t, m, ref, content, nil, day(1), time.Time{})
	damaged := (&Publishing{Former: first, Catalog: content, Created: day(1), Snapshot: true})
	image, _, err := damaged.Encode()
	if err != nil {
		t.Fatal(err)
	}
	parts := newArtifact(&image, nil).blobs
	base := first.Config().Base
	config := bytes.ReplaceAll(
		parts[image.Manifest.Config.Digest], []byte(base.Hex()), []byte(oci.DigestOf([]byte("other")).Hex()),
	)
	raw := bytes.ReplaceAll(
		image.Manifest.Raw, []byte(image.Manifest.Config.Digest.Hex()), []byte(oci.DigestOf(config).Hex()),
	)
	root := oci.DescriptorOf(oci.MediaTypeOCIManifest, raw)
	parts[oci.DigestOf(config)], parts[root.Digest] = config, raw
	digest := s.pushArtifact(t, ref, &artifact{root: root, blobs: parts})
	if _, err := m.client().Open(t.Context(), ref); !errors.Is(err, catalog.ErrMixedIndex) {
		t.Fatalf("the damaged state: %v", err)
	}
	replaced := ReadReplaced(t.Context(), m.Remote, ref)
	if replaced != (Replaced{2, digest}) {
		t.Fatalf("the damaged state has the place %+v", replaced)
	}
	next := Publishing{Replaced: replaced, Catalog: content, Created: day(1), Snapshot: true}
	if image, _, err = next.Encode(); err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), m.Remote, ref, &image, nil); err != nil {
		t.Fatal(err)
	}
	// The machine has seen the first state, to which the chain leads.
	r, err := m.client().Open(t.Context(), ref)
	if err != nil || r.Config().Sequence != 3 || r.Config().Previous != digest {
		t.Errorf("the next state: %+v, %v", r, err)
	}
}

// TestARefusedStateIsNotRemembered publishes a state whose kinds contradict its configuration, and then a correct one
// in its place.
func TestARefusedStateIsNotRemembered(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m, ref := newMachine(t, nil), s.ref("index", "main")
	content := build(t, m, s.config("one"))
	first := publishAt(t, m, ref, content, nil, day(1), time.Time{})
	for _, kinds := range []int{1, 0} {
		wrong := content
		wrong.Config.Counts.Kinds += kinds
		image, _, err := (&Publishing{Former: first, Catalog: wrong, Created: day(1), Snapshot: true}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		s.pushArtifact(t, ref, newArtifact(&image, nil))
		r, err := m.client().Open(t.Context(), ref)
		if kinds > 0 {
			if !errors.Is(err, catalog.ErrInvalidIndex) {
				t.Errorf("the wrong state: %v", err)
			}
			offline := m.client()
			offline.Offline = true
			if r, err := offline.Open(t.Context(), ref); err != nil || r.Config().Sequence != 1 {
				t.Errorf("the state before it, offline: %v", err)
			}
		} else if err != nil || r.Config().Sequence != 2 {
			t.Errorf("the state that replaces it: %v", err)
		}
	}
}

// TestRefusalsAreKept builds an index of a version that is refused. The reason is kept for this version and this
// program: another one may accept it.
func TestRefusalsAreKept(t *testing.T) {
	s := newServer(t)
	built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: Other\n")})
	if err != nil {
		t.Fatal(err)
	}
	d := s.pushArtifact(t, s.ref("one", "v1.0.0"), built)
	s.pushArtifact(t, s.ref("two", "v1.0.0"), built)
	m := newMachine(t, nil)
	reasons := func(program string) (out []string) {
		t.Helper()
		m.Program = program
		c := build(t, m, s.config("one", "two"))
		for i := range c.Packages {
			out = append(out, c.Packages[i].Error.Message)
		}
		return out
	}
	first := reasons("v1")
	key := NewBuilder(m.Options).refusalKey(s.ref("one", "v1.0.0"), d)
	raw, err := m.Store.GetDerived(t.Context(), key)
	if err != nil || !strings.Contains(string(raw), first[0]) {
		t.Fatalf("%s is kept, %v; want %s", raw, err, first[0])
	}
	if err := m.Store.PutDerived(t.Context(), key, []byte(`{"c":"Kept","m":"it is kept"}`)); err != nil {
		t.Fatal(err)
	}
	if again := reasons("v1"); again[0] != "it is kept" || again[1] != first[1] {
		t.Errorf("%q", again)
	}
	if other := reasons("v2"); !slices.Equal(other, first) {
		t.Errorf("%q for another program, want %q", other, first)
	}
}
