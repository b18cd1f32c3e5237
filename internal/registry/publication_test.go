package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/testing/indexkey"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// reader is an anonymous client of the published index, with a cache of its own.
type reader struct {
	client indexer.Client
	last   catalog.Config
}

func newReader(t testing.TB, s *server) *reader {
	t.Helper()
	s.waitUntil(t, "the first index is published", func() bool { return s.Site().Healthy() == nil })
	cache, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	return &reader{client: indexer.Client{Remote: s.client(t, ""), Store: cache}}
}

// catalog returns the content of the published index.
func (r *reader) catalog(t testing.TB) catalog.Catalog {
	t.Helper()
	index, err := r.client.Open(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := index.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	r.last = index.Config()
	return content
}

// kinds returns the kinds of the published index.
func (r *reader) kinds(t testing.TB) []string {
	t.Helper()
	var kinds []string
	for _, k := range r.catalog(t).Kinds {
		kinds = append(kinds, k.Kind)
	}
	return kinds
}

func TestThePublishedIndexFollowsPushesAndSurvivesARestart(t *testing.T) {
	first := start(t, nil)
	client := newReader(t, first)
	first.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	first.mustPush(t, "acme/secret/provider-plans:v1.0.0", "Plan")
	first.waitUntil(t, "the first package is published", func() bool {
		return slices.Equal(client.kinds(t), []string{
			"Boat",
		})
	})
	first.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
	first.waitUntil(t, "the second package is published", func() bool {
		return slices.Equal(client.kinds(t), []string{
			"Boat", "Raft",
		})
	})
	first.waitUntil(
		t, "the private package is found with credentials",
		func() bool { return len(first.found(t, first.admin, "kind:Plan")) == 1 },
	)
	before := client.last
	first.stop()

	second := start(t, func(o *registry.Options) { o.Dir = first.dir })
	client.client.Remote = second.client(t, "")
	second.waitUntil(t, "the index is ready", func() bool { return second.Site().Healthy() == nil })
	if client.kinds(t); client.last.Sequence != before.Sequence || !client.last.Created.Equal(before.Created) {
		t.Errorf(
			"a restart without changes published the index again: sequence %d, before %d", client.last.Sequence, before.Sequence,
		)
	}
	if err := second.push(t, first.admin, "acme/provider-cars:v1.0.0", "Car"); err != nil {
		t.Fatal(err)
	}
	// The client has seen the states before the restart, so it also checks that the new one continues them.
	second.waitUntil(
		t, "a package after the restart is published",
		func() bool { return slices.Equal(client.kinds(t), []string{"Boat", "Car", "Raft"}) },
	)
	if got := second.found(t, first.admin, "index"); len(got) != 0 {
		t.Errorf("the index is indexed: %q", got)
	}
}

// TestTheIndexContinuesWhenTheRegistryLosesIt checks that clients accept the next state if the registry has lost the
// newest one, or was restored from a backup.
func TestTheIndexContinuesWhenTheRegistryLosesIt(t *testing.T) {
	remove := func(t *testing.T, dir, _ string) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for name, damage := range map[string]func(t *testing.T, dir, backup string){
		"lost": remove,
		"an older state": func(t *testing.T, dir, backup string) {
			remove(t, dir, "")
			if err := os.CopyFS(dir, os.DirFS(backup)); err != nil {
				t.Fatal(err)
			}
		},
		"invalid": func(t *testing.T, dir, _ string) { invalidateIndex(t, dir) },
		"lost layers": func(t *testing.T, dir, _ string) {
			files, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
			for _, file := range files {
				content, readErr := os.ReadFile(file)
				if err = errors.Join(err, readErr); len(content) > 0 && content[0] != '{' {
					err = errors.Join(err, os.Remove(file))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"another index": func(t *testing.T, dir, _ string) {
			other := start(t, func(o *registry.Options) { o.Host = "other.example.org" })
			other.waitUntil(t, "the other index is published", func() bool { return len(other.states(t, "")) > 0 })
			other.stop()
			remove(t, dir, "")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(other.dir, "registry", "index"))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			client := newReader(t, s)
			s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
			s.waitUntil(t, "the first package is published", func() bool {
				return slices.Equal(client.kinds(t), []string{
					"Boat",
				})
			})
			dir, backup := filepath.Join(s.dir, "registry", "index"), filepath.Join(t.TempDir(), "index")
			if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for i, kind := range []string{"Raft", "Train"} {
				s.mustPush(t, "acme/provider-boats:v1."+strconv.Itoa(i+1)+".0", kind)
				s.waitUntil(t, "the next version is published", func() bool {
					return slices.Equal(client.kinds(t), []string{
						kind,
					})
				})
			}
			before := client.last.Sequence
			s.stop()
			damage(t, dir, backup)
			first := s
			s = start(t, func(o *registry.Options) { o.Dir = first.dir })
			s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
			client.client.Remote = s.client(t, "")
			if got := client.kinds(t); !slices.Equal(got, []string{"Train"}) || client.last.Sequence != before+1 {
				t.Errorf("the index has the kinds %q and the sequence %d, want the sequence %d", got, client.last.Sequence, before+
					1)
			}
		})
	}
}

// invalidateIndex replaces the packages of the current state of the index in an OCI layout by a text that no reader
// accepts.
func invalidateIndex(t *testing.T, dir string) {
	t.Helper()
	read := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	path := func(d oci.Digest) string { return filepath.Join("blobs", "sha256", d.Hex()) }
	write := func(content []byte) oci.Digest {
		d := oci.DigestOf(content)
		if err := os.WriteFile(filepath.Join(dir, path(d)), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return d
	}
	list := string(read("index.json"))
	type descriptor struct {
		Digest      oci.Digest        `json:"digest"`
		Annotations map[string]string `json:"annotations"`
	}
	var layout struct {
		Manifests []descriptor `json:"manifests"`
	}
	if err := json.Unmarshal([]byte(list), &layout); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(
		layout.Manifests, func(d descriptor) bool { return d.Annotations["org.opencontainers.image.ref.name"] == "main" },
	)
	m, err := catalog.ParseManifest(read(path(layout.Manifests[at].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	other := write([]byte(strings.Repeat("a", int(m.Packages.Size))))
	changed := strings.ReplaceAll(string(m.Raw), m.Packages.Digest.String(), other.String())
	list = strings.ReplaceAll(list, m.Digest.String(), write([]byte(changed)).String())
	if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTheIndexContinuesWhenItIsDeletedInTheBackend deletes the current state while two servers run, of which the second
// one has followed the first one.
func TestTheIndexContinuesWhenItIsDeletedInTheBackend(t *testing.T) {
	address := startRegistry(t)
	direct := remote.New(remote.Options{})
	t.Cleanup(direct.Close)
	now, in := newClock(), inCluster(t)
	front := func() *server {
		s := start(t, func(o *registry.Options) {
			o.Now = now.read
			o.Backend = &registry.BackendOptions{
				Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats"}, PublishIndex: true, Cluster: in,
			}
		})
		s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
		return s
	}
	first := front()
	now.add(time.Minute)
	first.Site().CheckAll()
	client := newReader(t, first)
	index := oci.MustParseReference(address + "/index:main")
	isPublished := func() bool {
		_, err := direct.Resolve(t.Context(), index)
		return err == nil
	}
	first.waitUntil(t, "the index is published", isPublished)
	first.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	first.waitUntil(t, "the package is published", func() bool { return slices.Equal(client.kinds(t), []string{"Boat"}) })
	second := front()
	remove := func() {
		t.Helper()
		current, err := direct.Resolve(t.Context(), index)
		if err != nil {
			t.Fatal(err)
		}
		if err := direct.Delete(t.Context(), index.WithDigest(current.Digest)); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	before := client.last.Sequence
	first.Site().CheckAll()
	first.waitUntil(t, "the holder publishes the index again", isPublished)
	if client.kinds(t); client.last.Sequence != before+1 {
		t.Errorf("the sequence is %d, want %d", client.last.Sequence, before+1)
	}
	_, updates := second.Site().Updated()
	second.waitUntil(t, "the second server follows", func() bool {
		second.Site().CheckAll()
		_, n := second.Site().Updated()
		return n >= updates+2 // One can have started before.
	})
	first.stop()
	remove()
	before = client.last.Sequence
	client.client.Remote = second.client(t, "")
	second.waitUntil(t, "the second server publishes the index", func() bool {
		now.add(time.Minute)
		second.Site().CheckAll()
		return isPublished()
	})
	if client.kinds(t); client.last.Sequence <= before {
		t.Errorf("the sequence is %d, want more than %d", client.last.Sequence, before)
	}
}

func TestOnlyTheServerChangesItsIndex(t *testing.T) {
	s := start(t, nil)
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	for _, reference := range []string{"index:main", "index:v1.0.0"} {
		if err := s.push(t, s.admin, reference, "Boat"); !errors.Is(err, remote.ErrRefused) {
			t.Errorf("a push to %s: %v", reference, err)
		}
	}
	if got := s.do(t, http.MethodPost, "/v2/index/blobs/uploads/", s.admin, nil).StatusCode; got != http.StatusConflict {
		t.Errorf("an upload to the repository of the index: %d", got)
	}
	current, err := s.client(t, "").Resolve(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"main", current.Digest.String()} {
		if got := s.do(t, http.MethodDelete, "/v2/index/manifests/"+reference, s.admin, nil).
			StatusCode; got != http.StatusConflict {
			t.Errorf("a deletion of index %s: %d", reference, got)
		}
	}
}

// indexBlobs returns the paths of the blobs of the published index.
func (s *server) indexBlobs(t *testing.T) map[string]bool {
	t.Helper()
	a, err := s.client(t, "").Artifact(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil {
		t.Fatal(err)
	}
	blobs := map[string]bool{}
	err = oci.Walk(t.Context(), a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, _ []byte) error {
		blobs["/v2/index/blobs/"+d.Digest.String()] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blobs
}

// TestAPackageThatBecomesPrivateLeavesThePublishedIndex checks that neither the index nor its former states contain it.
func TestAPackageThatBecomesPrivateLeavesThePublishedIndex(t *testing.T) {
	s := start(t, nil)
	client := newReader(t, s)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/later/provider-plans:v1.0.0", "Plan")
	s.waitUntil(t, "both packages are published", func() bool {
		return slices.Equal(client.kinds(t), []string{
			"Boat", "Plan",
		})
	})
	former, err := s.client(t, "").Resolve(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil {
		t.Fatal(err)
	}
	formerBlobs := s.indexBlobs(t)
	for blob := range formerBlobs {
		if got := s.do(t, http.MethodGet, blob, "", nil).StatusCode; got != http.StatusOK {
			t.Errorf("%s of the current state: %d", blob, got)
		}
	}
	changed := policy + "- prefix: acme/later\n  private: true\n  owners: [alice]\n"
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	first := s
	s.stop()
	s = start(t, func(o *registry.Options) { o.Dir = first.dir })
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	client.client.Remote = s.client(t, "")
	s.waitUntil(t, "the package left the index", func() bool { return slices.Equal(client.kinds(t), []string{"Boat"}) })
	gone := "/v2/index/manifests/" + former.Digest.String()
	s.waitUntil(
		t, "the former state is removed",
		func() bool { return s.do(t, http.MethodGet, gone, "", nil).StatusCode == http.StatusUnauthorized },
	)
	currentBlobs := s.indexBlobs(t)
	for blob := range formerBlobs {
		want := http.StatusUnauthorized
		if currentBlobs[blob] {
			want = http.StatusOK
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if got := s.do(t, method, blob, "", nil).StatusCode; got != want {
				t.Errorf("%s %s of the former state: %d, want %d", method, blob, got, want)
			}
		}
		_, digest, _ := strings.Cut(blob, "/blobs/")
		admin := first.admin
		mount := s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/?from=index&mount="+digest, admin, nil)
		if mount.StatusCode != http.StatusAccepted {
			t.Errorf("a mount of %s: %d", blob, mount.StatusCode)
		}
	}
	for blob := range currentBlobs {
		if got := s.do(t, http.MethodGet, blob, "", nil).StatusCode; got != http.StatusOK {
			t.Errorf("%s of the new state: %d", blob, got)
		}
	}
	a, err := s.client(t, "").Artifact(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil {
		t.Fatal(err)
	}
	err = oci.Walk(t.Context(), a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, raw []byte) error {
		if d.MediaType == catalog.MediaTypeJournal {
			t.Errorf("the new state has a journal, which can name the package")
		}
		if strings.Contains(string(raw), "plans") {
			t.Errorf("the new state names the package")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheServedIndexEqualsTheOneThatIndexBuildMakes compares the published index with one that a client builds from the
// registry: its content after pushes one by one, and every byte after a restart without the index and the caches.
func TestTheServedIndexEqualsTheOneThatIndexBuildMakes(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	owners := "groups:\n- {group: boats.example.org, owner: acme}\n- {group: plans.example.org, owner: acme/secret}\n- {group: cars.example.org, owner: other}\n"
	fixed := func(o *registry.Options) { o.Now, o.Texts = func() time.Time { return now }, true }
	first := start(t, func(o *registry.Options) {
		fixed(o)
		if err := os.WriteFile(filepath.Join(o.Dir, "access.yaml"), []byte(policy+owners), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	client := newReader(t, first)
	for _, v := range []string{"v1.0.0", "v1.1.0", "v2.0.0-rc.1", "latest"} {
		first.mustPush(t, "acme/provider-boats:"+v, "Boat")
	}
	first.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
	first.mustPush(t, "acme/provider-rafts:v1.1.0", "Canoe")
	first.mustPush(t, "acme/provider-trains:main", "Train")
	first.mustPush(t, "acme/secret/provider-plans:v1.0.0", "Plan")
	ref := oci.MustParseReference(host + "/acme/provider-rafts:v1.1.0")
	yanked := catalog.Status{State: catalog.Yanked, Reason: catalog.Broken, Since: now}
	if _, err := packagestatus.Write(t.Context(), first.client(t, first.admin), ref, yanked); err != nil {
		t.Fatal(err)
	}
	notPackage, err := packagestatus.NewArtifact(oci.Descriptor{
		MediaType: oci.MediaTypeOCIManifest, Digest: oci.DigestOf(nil),
	}, catalog.VersionStatus{
		Status: yanked, Tag: "v1.0.0", Digest: oci.DigestOf(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.client(t, first.admin).
		Push(t.Context(), oci.MustParseReference(host+"/acme/other:v1.0.0"), notPackage); err != nil {
		t.Fatal(err)
	}
	want := []string{"Boat", "Raft", "Train"}
	first.waitUntil(t, "all packages are published", func() bool { return slices.Equal(client.kinds(t), want) })
	served, err := client.client.Open(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := served.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	built := buildIndex(t, first)
	if got, want := served.Config().Owners, built.Config.Owners; !slices.Equal(got, want) {
		t.Errorf("the owners are %v, want %v", got, want)
	}
	if events := catalog.Diff(&built, &content); len(events) > 0 {
		t.Errorf("after pushes one by one, the index differs from a new one: %+v", events)
	}
	first.stop()
	for _, dir := range []string{"registry/index", "cache"} {
		if err := os.RemoveAll(filepath.Join(first.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}

	second := start(t, func(o *registry.Options) { fixed(o); o.Dir = first.dir })
	second.waitUntil(t, "the index is ready", func() bool { return second.Site().Healthy() == nil })
	image, _, err := (&indexer.Publishing{Catalog: built, Created: now, Expires: served.Config().Expires}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	current, err := second.client(t, "").Resolve(t.Context(), oci.MustParseReference(host+"/index:main"))
	if err != nil || current.Digest != image.Manifest.Digest {
		t.Errorf("the server publishes %s, and a client builds %s: %v", current.Digest, image.Manifest.Digest, err)
	}
}

// buildIndex builds the index of the public packages like `xpkg index build --registry --texts`.
func buildIndex(t testing.TB, s *server) catalog.Catalog {
	t.Helper()
	cache, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := remote.Options{Transport: direct{s, ""}, Attempts: 1}
	source := fetch.NewSource(fetch.Options{Remote: o, Store: cache})
	t.Cleanup(func() {
		source.Close()
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	builder := indexer.NewBuilder(indexer.Options{Remote: s.client(t, ""), Source: source, Store: cache, Texts: true})
	c, err := builder.Build(t.Context(), catalog.Config{
		Name: host, Sources: []catalog.Source{{Kind: catalog.SourceRegistry, Location: host}},
		Owners: []catalog.GroupOwner{{Group: "boats.example.org", Owner: host + "/acme"}, {
			Group: "cars.example.org", Owner: host + "/other",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A signature of the current state that was replaced or deleted in the backend is made again by the next update.
func TestTheSignatureOfTheCurrentStateIsRepaired(t *testing.T) {
	address := startRegistry(t)
	signer, _ := indexkey.New(t)
	other, _ := indexkey.New(t)
	s := start(t, func(o *registry.Options) {
		o.Signer = signer
		o.Backend = &registry.BackendOptions{
			Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats", "index"}, PublishIndex: true,
		}
	})
	backend := remote.New(remote.Options{})
	t.Cleanup(backend.Close)
	index := oci.MustParseReference(address + "/index:main")
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	var state oci.Descriptor
	s.waitUntil(t, "the package is published", func() bool {
		if len(s.found(t, "", "kind:Boat")) != 1 {
			return false
		}
		var err error
		// The search can have the package before the server holds the lease, and the index before it is signed.
		if state, err = backend.Resolve(t.Context(), index); err != nil {
			return false
		}
		signed, err := signer.HasSigned(t.Context(), backend, index, state.Digest)
		return err == nil && signed
	})
	for name, damage := range map[string]func() error{
		"a signature of another key": func() error { return other.Push(t.Context(), backend, index, state.Digest) },
		"a package": func() error {
			_, err := backend.Push(
				t.Context(), index.WithTag(indexer.SignatureTag(state.Digest)), build(t, packageYAML("boats", "Boat")),
			)
			return err
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if signed, err := signer.HasSigned(t.Context(), backend, index, state.Digest); signed || err != nil {
			t.Fatalf("%s is a signature of the server: %t, %v", name, signed, err)
		}
		s.mustPush(t, "acme/provider-boats:latest", "Raft"+strconv.Itoa(len(name)))
		s.waitUntil(t, name+" is replaced", func() bool {
			signed, err := signer.HasSigned(t.Context(), backend, index, state.Digest)
			return err == nil && signed
		})
	}
	if current, err := backend.Resolve(t.Context(), index); err != nil || current.Digest != state.Digest {
		t.Errorf("the state is %s, %v, want %s", current.Digest, err, state.Digest)
	}
}

// A package whose repository is damaged when the server starts keeps its content in the published index.
func TestADamagedRepositoryStaysInTheIndexAfterARestart(t *testing.T) {
	first := start(t, nil)
	client := newReader(t, first)
	first.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	first.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
	first.waitUntil(t, "the packages are published", func() bool {
		return slices.Equal(client.kinds(t), []string{
			"Boat", "Raft",
		})
	})
	before := client.last.Sequence
	first.stop()
	writeList(t, filepath.Join(first.dir, "registry", "acme", "provider-boats"), []byte("{"))

	second := start(t, func(o *registry.Options) { o.Dir = first.dir })
	client.client.Remote = second.client(t, "")
	second.waitUntil(t, "the index is ready", func() bool { return second.Site().Healthy() == nil })
	if got := client.kinds(t); !slices.Equal(got, []string{"Boat", "Raft"}) || client.last.Sequence != before {
		t.Errorf("the kinds are %q in the state %d, after %d", got, client.last.Sequence, before)
	}
	if err := second.push(t, first.admin, "acme/provider-cars:v1.0.0", "Car"); err != nil {
		t.Fatal(err)
	}
	second.waitUntil(
		t, "a package after the restart is published",
		func() bool { return slices.Equal(client.kinds(t), []string{"Boat", "Car", "Raft"}) },
	)
	content := client.catalog(t)
	if h := content.History(host + "/acme/provider-boats"); h == nil || len(h.Versions) != 1 {
		t.Errorf("the history is %+v", h)
	}
}

// A package whose private repository is damaged when the server starts keeps its content for the clients that may read
// it.
func TestADamagedPrivateRepositoryStaysInTheIndexAfterARestart(t *testing.T) {
	first := start(t, nil)
	bob := first.token(t, "bob", []string{"*"}, access.Read)
	first.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	first.mustPush(t, "acme/secret/provider-boats:v1.1.0", "Ship")
	first.mustPush(t, "acme/secret/provider-rafts:v1.0.0", "Raft")
	first.waitUntil(t, "the packages are in the index", func() bool {
		return len(first.found(t, bob, "kind:Ship")) == 1 && len(first.found(t, bob, "kind:Raft")) == 1
	})
	first.stop()
	writeList(t, filepath.Join(first.dir, "registry", "acme", "secret", "provider-boats"), []byte("{"))
	for range 2 { // The second server has the record of one that could not list the repository.
		s := start(t, func(o *registry.Options) { o.Dir = first.dir })
		s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
		check := func() {
			t.Helper()
			if got := s.found(t, bob, "kind:Ship"); !slices.Equal(got, []string{"acme/secret/provider-boats"}) {
				t.Errorf("the package is not found: %q", got)
			}
			if got := s.found(t, "", "kind:Ship"); len(got) > 0 {
				t.Errorf("a client without credentials finds %q", got)
			}
			h := s.Site().Catalog("acme/secret").History(host + "/acme/secret/provider-boats")
			if h == nil || len(h.Versions) != 2 || len(h.Kinds) != 2 {
				t.Errorf("the history is %+v", h)
			}
		}
		check()
		if err := s.push(t, first.admin, "acme/secret/provider-cars:v1.0.0", "Car"); err != nil {
			t.Fatal(err)
		}
		s.waitUntil(t, "a package after the restart is found", func() bool { return len(s.found(t, bob, "kind:Car")) == 1 })
		check()
		s.stop()
	}
}
