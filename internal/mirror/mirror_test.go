package mirror_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/indexkey"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

func registry(t *testing.T) string {
	t.Helper()
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	t.Cleanup(func() { _ = images.Close() })
	return strings.TrimPrefix(port.Serve(t, images).URL, "http://")
}

// copyIndex publishes a signed index in the source, copies it, and reads it in the mirror with the key.
func copyIndex(t *testing.T, client *remote.Client, o mirror.Options, from string, c *catalog.Catalog) {
	t.Helper()
	signer, key := indexkey.New(t)
	keys, err := indexer.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	image, _, err := (&indexer.Publishing{Catalog: *c, Created: time.Unix(1e9, 0)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	index := oci.MustParseReference(from + "/index:main")
	if err := signer.Push(t.Context(), client, index, image.Manifest.Digest); err != nil {
		t.Fatal(err)
	}
	if err := indexer.Publish(t.Context(), client, index, &image, nil); err != nil {
		t.Fatal(err)
	}
	if err := mirror.CopyIndex(t.Context(), o, index); err != nil {
		t.Fatal(err)
	}
	target, err := mirror.TargetIndex(o, index)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cache.Close() }()
	reader, err := (&indexer.Client{Remote: client, Store: cache, Keys: keys}).Open(t.Context(), target)
	if err != nil || reader.Manifest().Digest != image.Manifest.Digest {
		t.Errorf("the index in the mirror: %v", err)
	}
}

// push pushes a package with a kind, and returns its facts.
func push(t *testing.T, host, name, tag, kind string) catalog.Facts {
	t.Helper()
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\nspec:\n  controller: {image: example.org/x:v1}\n" +
		publish.Definition(name+".example.org", kind, "A kind.")
	repository := host + "/acme/" + name
	digest, err := publish.Package(t.Context(), repository+":"+tag, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Facts{
		Repository: repository, Version: catalog.Version{Tag: tag, Digest: digest, Kinds: 1},
		Head: &catalog.Head{Package: catalog.Package{Repository: repository, Type: "Provider"}, Kinds: []catalog.Kind{{
			Kind: kind, Group: name + ".example.org", Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind), Scope: "Cluster",
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

func TestAMirrorHasTheVersionsAndTheirStatuses(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (from, to string){
		"olareg": func(t *testing.T) (string, string) { return registry(t), registry(t) },
		// It has no referrers API.
		"docker-registry":    func(t *testing.T) (string, string) { return registry(t), dockerregistry.Start(t) },
		"of docker-registry": func(t *testing.T) (string, string) { return dockerregistry.Start(t), registry(t) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := start(t)
			testMirror(t, from, to)
		})
	}
}

// testMirror copies two packages, one of which is yanked, with a signed index, and then a new version.
func testMirror(t *testing.T, from, to string) {
	t.Helper()
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	boats, rafts := push(t, from, "provider-boats", "v1.0.0", "Boat"), push(t, from, "provider-rafts", "v1.0.0", "Raft")
	yanked := catalog.Status{State: catalog.Yanked, Reason: catalog.Broken, Message: "it sinks", Since: time.Unix(1e9, 0)}
	if _, err := packagestatus.Write(t.Context(), client, oci.MustParseReference(rafts.Repository+":v1.0.0"), yanked); err != nil {
		t.Fatal(err)
	}
	var copied []string
	o := mirror.Options{Client: client, Target: to + "/mirror", Progress: func(reference string) { copied = append(copied, reference) }}
	first := build(t, boats, rafts)
	if _, err := mirror.Run(t.Context(), o, nil, first); err != nil {
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
	got, err := mirror.Run(t.Context(), o, first, next)
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
	if _, err := mirror.Run(ctx, o, nil, c); err == nil {
		t.Fatal("an interrupted run succeeds")
	}
	o.Progress = nil
	if _, err := mirror.Run(t.Context(), o, nil, c); err != nil {
		t.Fatal(err)
	}
	for _, f := range facts {
		if got, err := client.Resolve(t.Context(), oci.MustParseReference(strings.Replace(f.Repository, from, to, 1)+":v1.0.0")); err != nil || got.Digest != f.Version.Digest {
			t.Errorf("%s: %v", f.Repository, err)
		}
	}
}

func TestAMirrorOfKindsHasOnlyTheirPackages(t *testing.T) {
	from, to := registry(t), registry(t)
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	c := build(t, push(t, from, "provider-boats", "v1.0.0", "Boat"), push(t, from, "provider-rafts", "v1.0.0", "Raft"))
	got, err := mirror.Run(t.Context(), mirror.Options{Client: client, Target: to, Kinds: []string{"Raft.provider-rafts.example.org"}}, nil, c)
	if err != nil || got.Packages != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := client.Resolve(t.Context(), oci.MustParseReference(to+"/acme/provider-boats:v1.0.0")); err == nil {
		t.Error("another package was copied")
	}
}
