package mirror_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/indexkey"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

func registry(t *testing.T) string {
	t.Helper()
	images := localregistry.New(t)
	return strings.TrimPrefix(port.Serve(t, images).URL, "http://")
}

// publishIndex publishes the next state of an index, signed.
func publishIndex(
	t *testing.T, client *remote.Client, signer *indexer.Signer, index oci.Reference, c *catalog.Catalog,
	former *catalog.Reader,
) {
	t.Helper()
	p := indexer.Publishing{Catalog: *c, Created: time.Unix(1e9, 0), Former: former, Snapshot: true}
	image, _, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := signer.Push(t.Context(), client, index, image.Manifest.Digest); err != nil {
		t.Fatal(err)
	}
	if err := indexer.Publish(t.Context(), client, index, &image, former); err != nil {
		t.Fatal(err)
	}
}

// openIndex reads an index, whose signature it verifies if there are keys.
func openIndex(t *testing.T, client *remote.Client, index oci.Reference, keys indexer.Keys) *catalog.Reader {
	t.Helper()
	cache, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cache.Close() })
	reader, err := (&indexer.Client{Remote: client, Store: cache, Keys: keys}).Open(t.Context(), index)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// copyIndex publishes a signed index in the source, copies it, and reads it in the mirror with the key.
func copyIndex(t *testing.T, client *remote.Client, o mirror.Options, from string, c *catalog.Catalog) {
	t.Helper()
	signer, key := indexkey.New(t)
	keys, err := indexer.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	index := oci.MustParseReference(from + "/index:main")
	publishIndex(t, client, signer, index, c, nil)
	state := openIndex(t, client, index, keys)
	if _, _, err := mirror.CopyIndex(t.Context(), o, index, state); err != nil {
		t.Fatal(err)
	}
	if got := openIndex(t, client, mirrored(t, o, index), keys); got.Manifest().Digest != state.Manifest().Digest {
		t.Errorf("the index in the mirror is %s", got.Manifest().Digest)
	}
}

// mirrored returns the reference in the mirror of one in the source.
func mirrored(t *testing.T, o mirror.Options, ref oci.Reference) oci.Reference {
	t.Helper()
	to, err := oci.ParseReference(o.Target+"/"+ref.RepositoryPath()+":"+ref.Tag, oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// push pushes a package with a kind, and returns its facts.
func push(t *testing.T, host, name, tag, kind string) catalog.Facts {
	t.Helper()
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name +
		"}\nspec:\n  controller: {image: example.org/x:v1}\n" +
		publish.Definition(name+".example.org", kind, "A kind.")
	repository := host + "/acme/" + name
	digest, err := publish.Package(t.Context(), repository+":"+tag, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Facts{
		Repository: repository, Version: catalog.Version{Tag: tag, Digest: digest, Kinds: 1},
		Head: &catalog.Head{Package: catalog.Package{Repository: repository, Type: "Provider"}, Kinds: []catalog.Kind{{
			Kind: kind, Group: name + ".example.org", Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind),
			Scope:  "Cluster",
			Served: []string{"v1"}, Role: catalog.Provides, Repository: repository,
		}}},
		Served: []catalog.ServedKind{{Group: name + ".example.org", Kind: kind, Versions: []string{"v1"}}},
	}
}

func build(t *testing.T, facts ...catalog.Facts) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Build(catalog.Config{Name: "test"}, facts)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// betweenRegistries runs a test of a mirror with each kind of registry as the source and as the target.
func betweenRegistries(t *testing.T, test func(t *testing.T, from, to string)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) (from, to string){
		"xpkg": func(t *testing.T) (string, string) { return registry(t), registry(t) },
		// It has no referrers API.
		"docker-registry":    func(t *testing.T) (string, string) { return registry(t), dockerregistry.Start(t) },
		"of docker-registry": func(t *testing.T) (string, string) { return dockerregistry.Start(t), registry(t) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := start(t)
			test(t, from, to)
		})
	}
}

func TestAMirrorHasTheVersionsAndTheirStatuses(t *testing.T) { betweenRegistries(t, testMirror) }

// testMirror copies two packages, one of which is yanked, with a signed index, and then a new version.
func testMirror(t *testing.T, from, to string) {
	t.Helper()
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	boats, rafts := push(t, from, "provider-boats", "v1.0.0", "Boat"), push(t, from, "provider-rafts", "v1.0.0", "Raft")
	yanked := catalog.Status{State: catalog.Yanked, Reason: catalog.Broken, Message: "it sinks", Since: time.Unix(1e9, 0)}
	if _, err := packagestatus.Write(
		t.Context(), client, oci.MustParseReference(rafts.Repository+":v1.0.0"), yanked,
	); err != nil {
		t.Fatal(err)
	}
	var copied []string
	o := mirror.Options{Client: client, Target: to +
		"/mirror", Progress: func(reference string) { copied = append(copied, reference) }}
	first := build(t, boats, rafts)
	if _, err := mirror.Run(t.Context(), o, first); err != nil {
		t.Fatal(err)
	}
	for _, f := range []catalog.Facts{boats, rafts} {
		ref := oci.MustParseReference(strings.Replace(f.Repository, from, to+"/mirror", 1) + ":v1.0.0")
		got, err := client.Resolve(t.Context(), ref)
		if err != nil || got.Digest != f.Version.Digest {
			t.Errorf("%s: %s, %v", ref, got.Digest, err)
		}
	}
	ref := oci.MustParseReference(to + "/mirror/acme/provider-rafts:v1.0.0").WithDigest(rafts.Version.Digest)
	status, err := packagestatus.Read(t.Context(), client, ref)
	if err != nil || status == nil || status.Message != "it sinks" {
		t.Errorf("the status in the mirror: %+v, %v", status, err)
	}
	referrers, err := client.Referrers(t.Context(), ref, catalog.StatusArtifactType)
	if err != nil || len(referrers) != 1 {
		t.Errorf("the referrers in the mirror: %v, %v", referrers, err)
	}
	copyIndex(t, client, o, from, first)
	copied = nil
	next := build(t, boats, rafts, push(t, from, "provider-boats", "v1.1.0", "Boat"))
	got, err := mirror.Run(t.Context(), o, next)
	if err != nil || got.Packages != 1 || strings.Contains(strings.Join(copied, " "), "rafts") {
		t.Errorf("the next state: %+v, %q, %v", got, copied, err)
	}
}

func TestAnInterruptedMirrorContinues(t *testing.T) {
	from, to := registry(t), registry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	var facts []catalog.Facts
	for i := range 5 {
		facts = append(facts, push(t, from, fmt.Sprintf("provider-%d", i), "v1.0.0", fmt.Sprintf("Kind%d", i)))
	}
	c := build(t, facts...)
	ctx, cancel := context.WithCancel(t.Context())
	copied := 0
	o := mirror.Options{Client: client, Target: to, Progress: func(string) {
		if copied++; copied == 2 {
			cancel()
		}
	}}
	if _, err := mirror.Run(ctx, o, c); err == nil {
		t.Fatal("an interrupted run succeeds")
	}
	o.Progress = nil
	if _, err := mirror.Run(t.Context(), o, c); err != nil {
		t.Fatal(err)
	}
	for _, f := range facts {
		if got, err := client.Resolve(
			t.Context(), oci.MustParseReference(strings.Replace(f.Repository, from, to, 1)+":v1.0.0"),
		); err != nil || got.Digest != f.Version.Digest {
			t.Errorf("%s: %v", f.Repository, err)
		}
	}
}

func TestAMirrorOfKindsHasOnlyTheirPackages(t *testing.T) {
	from, to := registry(t), registry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	c := build(t, push(t, from, "provider-boats", "v1.0.0", "Boat"), push(t, from, "provider-rafts", "v1.0.0", "Raft"))
	got, err := mirror.Run(
		t.Context(), mirror.Options{Client: client, Target: to, Kinds: []string{"Raft.provider-rafts.example.org"}}, c,
	)
	if err != nil || got.Packages != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := client.Resolve(t.Context(), oci.MustParseReference(to+"/acme/provider-boats:v1.0.0")); err == nil {
		t.Error("another package was copied")
	}
	_, err = mirror.Run(t.Context(), mirror.Options{Client: client, Target: to, Kinds: []string{"Raft", "Plane"}}, c)
	if !errors.Is(err, indexer.ErrNothingFound) || !strings.Contains(err.Error(), "Plane") {
		t.Errorf("a kind that no package defines: %v", err)
	}
}

// TestPackagesOfTwoRegistriesShareNoRepository mirrors two repositories with one path.
func TestPackagesOfTwoRegistriesShareNoRepository(t *testing.T) {
	first, second, to := registry(t), registry(t), registry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	c := build(t, push(t, first, "provider-boats", "v1.0.0", "Boat"), push(t, second, "provider-boats", "v1.0.0", "Raft"))
	got, err := mirror.Run(t.Context(), mirror.Options{Client: client, Target: to}, c)
	if !errors.Is(err, mirror.ErrMirror) || !strings.Contains(err.Error(), "/acme/provider-boats would both be copied") {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := client.Resolve(t.Context(), oci.MustParseReference(to+"/acme/provider-boats:v1.0.0")); err == nil {
		t.Error("a version was copied")
	}
	for _, kind := range []string{"Boat", "Raft"} {
		if got, err := mirror.Run(
			t.Context(), mirror.Options{Client: client, Target: to + "/" + strings.ToLower(kind), Kinds: []string{kind}}, c,
		); err != nil || got.Versions != 1 {
			t.Errorf("%s alone: %+v, %v", kind, got, err)
		}
	}
}

// The source publishes another version while the mirror copies: the mirror has the state whose packages it copied, and
// the next run copies the rest. A mirror with an index that lists more than it has, and one that lost content, is
// completed.
func TestAMirrorHasThePackagesOfItsIndex(t *testing.T) {
	from, to := registry(t), registry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	signer, _ := indexkey.New(t)
	index := oci.MustParseReference(from + "/index:main")
	o := mirror.Options{Client: client, Target: to}
	boats := push(t, from, "provider-boats", "v1.0.0", "Boat")
	publishIndex(t, client, signer, index, build(t, boats), nil)
	first := openIndex(t, client, index, nil)
	run := func(state *catalog.Reader) mirror.Result {
		t.Helper()
		c, err := state.Catalog()
		if err != nil {
			t.Fatal(err)
		}
		result, err := mirror.Run(t.Context(), o, &c)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	run(first)
	newer := push(t, from, "provider-boats", "v1.1.0", "Ferry")
	publishIndex(t, client, signer, index, build(t, boats, newer), first)
	if _, _, err := mirror.CopyIndex(t.Context(), o, index, first); err != nil {
		t.Fatal(err)
	}
	if got := openIndex(t, client, mirrored(t, o, index), nil).Manifest().Digest; got != first.Manifest().Digest {
		t.Errorf("the index in the mirror is %s instead of the state whose packages were copied", got.Short())
	}
	second := openIndex(t, client, index, nil)
	if _, _, err := mirror.CopyIndex(t.Context(), o, index, second); err != nil {
		t.Fatal(err)
	}
	if got := run(second); got.Versions != 1 {
		t.Errorf("a version that the index of the mirror lists was not copied: %+v", got)
	}
	lost := mirrored(t, o, oci.MustParseReference(boats.Repository+":v1.0.0"))
	if err := client.Delete(t.Context(), lost.WithDigest(boats.Version.Digest)); err != nil {
		t.Fatal(err)
	}
	if got := run(second); got.Versions != 1 {
		t.Errorf("a version that the mirror lost was not copied: %+v", got)
	}
	if got := run(second); got != (mirror.Result{}) {
		t.Errorf("a complete mirror: %+v", got)
	}
	if _, _, err := mirror.CopyIndex(t.Context(), o, index, first); !errors.Is(err, indexer.ErrIndexChanged) {
		t.Errorf("an older state replaces a newer one: %v", err)
	}
}

// A version is deleted after the state of the index that is copied.
func TestAVersionThatWasDeletedMeanwhileLeavesItsStatus(t *testing.T) {
	from, to := registry(t), registry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	c := build(t, push(t, from, "provider-boats", "v1.0.0", "Boat"), push(t, from, "provider-rafts", "v1.0.0", "Raft"))
	version := oci.MustParseReference(from + "/acme/provider-boats:v1.0.0")
	digest, err := packagestatus.Write(t.Context(), client, version, catalog.Status{
		State: catalog.Removed, Reason: catalog.Security,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), version.WithDigest(digest)); err != nil {
		t.Fatal(err)
	}
	o := mirror.Options{Client: client, Target: to}
	if got, err := mirror.Run(t.Context(), o, c); err != nil || got.Versions != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	s, err := packagestatus.Read(t.Context(), client, mirrored(t, o, version).WithDigest(digest))
	if err != nil || s == nil || s.Reason != catalog.Security {
		t.Errorf("the status in the mirror: %+v, %v", s, err)
	}
}

// attach pushes an artifact that refers to a manifest.
func attach(t *testing.T, client *remote.Client, subject oci.Reference, message string) oci.Reference {
	t.Helper()
	a, err := client.Artifact(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := packagestatus.NewArtifact(a.Root(), catalog.VersionStatus{
		Status: catalog.Status{State: catalog.Deprecated, Message: message, Since: time.Unix(1e9, 0)}, Tag: "v1.0.0",
		Digest: a.Root().Digest,
	})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := client.Attach(t.Context(), subject, artifact)
	if err != nil {
		t.Fatal(err)
	}
	return subject.WithDigest(digest)
}

// Content of one package that the mirror cannot have does not keep the other packages, their artifacts and the index
// from it: an artifact with too many layers, and a version that the target rejects.
func TestContentThatCannotBeCopiedDoesNotStopAMirror(t *testing.T) {
	from := registry(t)
	images := localregistry.New(t)
	to := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead &&
			strings.HasPrefix(r.URL.Path, "/v2/acme/provider-rejected/") {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	boats, crowded, rejected := push(t, from, "provider-boats", "v1.0.0", "Boat"),
		push(t, from, "provider-crowded", "v1.0.0", "Crowd"), push(t, from, "provider-rejected", "v1.0.0", "Reject")
	c := build(t, boats, crowded, rejected)
	version := oci.MustParseReference(crowded.Repository + ":v1.0.0").WithDigest(crowded.Version.Digest)
	raw := manifestWithLayers(t, version, 1000)
	for _, reference := range []string{oci.ArtifactTag(version.Digest, ".att"), oci.DigestOf(raw).String()} {
		send(t, http.MethodPut, "http://"+from+"/v2/acme/provider-crowded/manifests/"+
			reference, oci.MediaTypeOCIManifest, raw)
	}
	lists := []oci.Reference{
		attach(t, client, version, "a list of components"), attach(t, client, version, "another list"),
		attach(
			t, client, oci.MustParseReference(boats.Repository+":v1.0.0").WithDigest(boats.Version.Digest),
			"a list of components",
		),
	}
	o := mirror.Options{Client: client, Target: to}
	_, err := mirror.Run(t.Context(), o, c)
	if !errors.Is(err, mirror.ErrUnreadable) || !strings.Contains(err.Error(), crowded.Repository) ||
		!strings.Contains(err.Error(), rejected.Repository) || strings.Contains(err.Error(), boats.Repository) {
		t.Fatalf("the error is %v", err)
	}
	for _, ref := range append(
		lists, version, oci.MustParseReference(boats.Repository+":v1.0.0").WithDigest(boats.Version.Digest),
	) {
		if _, err := client.Resolve(t.Context(), mirrored(t, o, ref).WithTag("").WithDigest(ref.Digest)); err != nil {
			t.Errorf("%s is not in the mirror: %v", ref, err)
		}
	}
	copyIndex(t, client, o, from, c)
}

// A mirror that accepts a version and does not serve it, such as a registry whose disk was full, is an error in each
// run, which names the manifest. All other versions are copied.
func TestAMirrorThatDoesNotServeAVersionIsDamaged(t *testing.T) {
	from := registry(t)
	images := localregistry.New(t)
	damaged, boats := push(t, from, "provider-damaged", "v1.0.0", "Damaged"),
		push(t, from, "provider-boats", "v1.0.0", "Boat")
	to := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut && strings.HasPrefix(r.URL.Path, "/v2/acme/provider-damaged/manifests/") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	client := remote.New(remote.Options{Attempts: 1})
	t.Cleanup(client.Close)
	o := mirror.Options{Client: client, Target: to}
	for range 2 {
		_, err := mirror.Run(t.Context(), o, build(t, damaged, boats))
		if !errors.Is(err, mirror.ErrDamaged) || errors.Is(err, mirror.ErrUnreadable) ||
			!strings.Contains(err.Error(), to+"/acme/provider-damaged@"+damaged.Version.Digest.String()) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := client.Resolve(
		t.Context(), mirrored(t, o, oci.MustParseReference(boats.Repository+":v1.0.0")),
	); err != nil {
		t.Errorf("another version is not in the mirror: %v", err)
	}
}

// manifestWithLayers returns a manifest that refers to a version and has a number of layers, which are in the
// repository.
func manifestWithLayers(t *testing.T, version oci.Reference, layers int) []byte {
	t.Helper()
	blob := oci.Descriptor{MediaType: "application/vnd.oci.empty.v1+json", Digest: oci.DigestOf([]byte("{}")), Size: 2}
	send(t, http.MethodPost, "http://"+version.Registry+"/v2/"+version.Repository+"/blobs/uploads/?digest="+
		blob.Digest.String(), "application/octet-stream", []byte("{}"))
	document := oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, ArtifactType: "application/vnd.test", Config: &blob,
		Layers:  slices.Repeat([]oci.Descriptor{blob}, layers),
		Subject: &oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: version.Digest, Size: 1},
	}
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// send sends a request that creates something in a registry.
func send(t *testing.T, method, url string, contentType oci.MediaType, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", string(contentType))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s", method, url, resp.Status)
	}
}

// A version is complete in the mirror before artifacts are added to it: one that refers to it, one that refers to the
// former one, and one under a tag.
func TestArtifactsThatAreAddedLaterAreMirrored(t *testing.T) {
	betweenRegistries(t, testAddedArtifacts)
}

func testAddedArtifacts(t *testing.T, from, to string) {
	t.Helper()
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	boats := push(t, from, "provider-boats", "v1.0.0", "Boat")
	c := build(t, boats)
	o := mirror.Options{Client: client, Target: to}
	run := func() mirror.Result {
		t.Helper()
		result, err := mirror.Run(t.Context(), o, c)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	run()
	version := oci.MustParseReference(boats.Repository + ":v1.0.0").WithDigest(boats.Version.Digest)
	own := attach(t, client, mirrored(t, o, version).WithDigest(version.Digest), "of the mirror")
	list := attach(t, client, version, "a list of components")
	signature := attach(t, client, list, "the signature of the list")
	a, err := client.Artifact(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	tag := oci.ArtifactTag(oci.DigestOf([]byte("removed")), ".sig")
	if _, err := client.Push(t.Context(), version.WithTag(tag), a); err != nil {
		t.Fatal(err)
	}
	if got := run(); got != (mirror.Result{Packages: 1, Artifacts: 2}) {
		t.Errorf("copied %+v", got)
	}
	for _, pair := range [][2]oci.Reference{{version, list}, {version, own}, {list, signature}} {
		found, err := client.Referrers(t.Context(), mirrored(t, o, version).WithDigest(pair[0].Digest), "")
		if err != nil || !slices.ContainsFunc(found, func(d oci.Descriptor) bool { return d.Digest == pair[1].Digest }) {
			t.Errorf("%s does not refer to %s in the mirror: %v", pair[1].Digest.Short(), pair[0].Digest.Short(), err)
		}
	}
	if got, err := client.Resolve(t.Context(), mirrored(t, o, version.WithTag(tag))); err != nil ||
		got.Digest != list.Digest {
		t.Errorf("the tag in the mirror: %s, %v", got.Digest, err)
	}
	if got := run(); got != (mirror.Result{}) {
		t.Errorf("a complete mirror: %+v", got)
	}
}

// A source that denies the list of what refers to a version does not lose its signatures silently.
func TestAMirrorWithoutTheListOfReferrersFails(t *testing.T) {
	images, denies := localregistry.New(t), false
	from := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if denies && strings.HasPrefix(r.URL.Path, "/v2/acme/provider-hidden/referrers/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	c := build(t, push(t, from, "provider-boats", "v1.0.0", "Boat"), push(t, from, "provider-hidden", "v1.0.0", "Hidden"))
	denies = true
	_, err := mirror.Run(t.Context(), mirror.Options{Client: client, Target: registry(t)}, c)
	if !errors.Is(err, mirror.ErrUnreadable) || !strings.Contains(err.Error(), "provider-hidden") ||
		strings.Contains(err.Error(), "provider-boats") {
		t.Errorf("the error is %v", err)
	}
}
