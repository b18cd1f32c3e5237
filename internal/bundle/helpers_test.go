package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	check(t, err)
	return v
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newClient returns a client that does not wait, and does not repeat failed requests.
func newClient(t testing.TB, transport http.RoundTripper) *remote.Client {
	c := remote.New(remote.Options{
		Transport: transport, Attempts: 1,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	t.Cleanup(c.Close)
	return c
}

// counted counts the bytes that clients send to a registry, and can answer requests for referrers.
type counted struct {
	http.Handler
	sent      atomic.Int64
	writes    atomic.Int64
	referrers int
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.referrers != 0 && strings.Contains(r.URL.Path, "/referrers/") {
		w.WriteHeader(c.referrers)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.writes.Add(1)
		c.sent.Add(r.ContentLength)
	}
	c.Handler.ServeHTTP(w, r)
}

// serve serves a registry, ours or one without the referrers API, and returns its host.
func serve(t testing.TB, h *counted) string {
	return strings.TrimPrefix(port.Serve(t, h).URL, "http://")
}

func ours(t testing.TB) *counted { return &counted{Handler: localregistry.New(t)} }

// withReferrers is a registry that answers each request for referrers with a status.
func withReferrers(status int) *counted {
	return &counted{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), referrers: status}
}

// note returns an artifact with a subject.
func note(t testing.TB, subject oci.Descriptor, text string) oci.Artifact {
	t.Helper()
	empty := []byte("{}")
	config := oci.DescriptorOf("application/vnd.oci.empty.v1+json", empty)
	a, err := image.NewArtifact(oci.Document{
		ArtifactType: "application/vnd.test.note", Config: &config,
		Layers:  []oci.Descriptor{oci.DescriptorOf("text/plain", []byte(text))},
		Subject: &oci.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	}, empty, []byte(text))
	return must(t, a, err)
}

// closure is a random set of artifacts in a registry.
type closure struct {
	client *remote.Client
	refs   []oci.Reference
}

// newClosure pushes random packages with what belongs to them: images and indexes that share layers, signatures under
// tags, referrers, and referrers of these.
func newClosure(t testing.TB, random *rand.Rand, host string, count int) *closure {
	t.Helper()
	c := &closure{client: newClient(t, nil)}
	var layers [][]byte
	for range 3 {
		layer := make([]byte, 1+random.IntN(3000))
		for i := range layer {
			layer[i] = byte(random.Uint32())
		}
		layers = append(layers, layer)
	}
	for i := range count {
		var parts []oci.Artifact
		for _, arch := range []string{"amd64", "arm64", "s390x"}[:1+random.IntN(3)] {
			text := fmt.Sprintf("kind: Provider\n# %s %d %x\n", arch, i, layers[random.IntN(len(layers))])
			built, err := image.Build(t.Context(), image.Input{
				PackageYAML: []byte(text), Platform: oci.Platform{OS: "linux", Architecture: arch},
				Examples: layers[random.IntN(len(layers))],
			})
			parts = append(parts, must[oci.Artifact](t, built, err))
		}
		a := parts[0]
		if len(parts) > 1 {
			a = publish.Index(t, parts...)
		}
		ref := oci.MustParseReference(fmt.Sprintf("%s/acme/p%d:v%d", host, random.IntN(count), i))
		_, err := c.client.Push(t.Context(), ref, a)
		check(t, err)
		c.refs = append(c.refs, ref.WithDigest(a.Root().Digest))
		c.attach(t, random, ref, append(parts, a), 0)
	}
	return c
}

// attach adds artifacts that belong to some subjects, and some that belong to these.
func (c *closure) attach(t testing.TB, random *rand.Rand, ref oci.Reference, subjects []oci.Artifact, depth int) {
	for i, s := range subjects {
		text := fmt.Sprintf("%d %d %d", depth, i, random.Int())
		switch random.IntN(4 + depth) {
		case 0:
			n := note(t, s.Root(), text)
			_, err := c.client.Attach(t.Context(), ref, n)
			check(t, err)
			c.attach(t, random, ref, []oci.Artifact{n}, depth+1)
		case 1:
			built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: " + text + "\n")})
			check(t, err)
			suffix := []string{".sig", ".att", ".sbom", ".status"}[random.IntN(4)]
			_, err = c.client.Push(t.Context(), ref.WithTag(oci.ArtifactTag(s.Root().Digest, suffix)), built)
			check(t, err)
			c.attach(t, random, ref, []oci.Artifact{built}, depth+1)
		case 2:
			n := note(t, s.Root(), text)
			_, err := c.client.Attach(t.Context(), ref, n)
			check(t, err)
			_, err = c.client.Push(t.Context(), ref.WithTag(oci.ArtifactTag(s.Root().Digest, ".status")), n)
			check(t, err)
		}
	}
}

// items returns the artifacts as they are saved, in a random order.
func (c *closure) items(t testing.TB, random *rand.Rand) []bundle.Item {
	t.Helper()
	client := newClient(t, nil)
	var out []bundle.Item
	for _, ref := range c.refs {
		a, err := client.Artifact(t.Context(), ref)
		check(t, err)
		out = append(out, bundle.Item{Ref: ref, Content: a, Client: client, At: ref, IsPackage: true})
	}
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// saved writes a bundle, and returns its name.
func saved(t testing.TB, items []bundle.Item, o bundle.SaveOptions) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar")
	_, err := bundle.Save(t.Context(), file, items, o)
	check(t, err)
	return file
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	return must(t, raw, err)
}

// load loads a bundle below a prefix.
func load(ctx context.Context, client *remote.Client, file, prefix string) (err error) {
	b, err := bundle.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	return b.Load(ctx, bundle.LoadOptions{Client: client, Prefix: prefix})
}

// state describes all that clients can read of artifacts: each with its content, and what belongs to it.
func state(t testing.TB, client *remote.Client, refs []oci.Reference) string {
	t.Helper()
	var out []string
	for _, ref := range refs {
		d, err := client.Resolve(t.Context(), ref.WithTag(ref.Tag))
		check(t, err)
		a, err := client.Artifact(t.Context(), ref.WithDigest(d.Digest))
		check(t, err)
		check(t, readAll(t.Context(), a))
		line := fmt.Sprintf("%s %s %s", ref.Repository[strings.LastIndex(ref.Repository, "/"):], ref.Tag, d.Digest)
		all, err := client.FindAttached(t.Context(), ref.WithDigest(d.Digest), a)
		check(t, err)
		for _, attached := range all {
			b, err := client.OpenAttached(t.Context(), attached)
			check(t, err)
			check(t, readAll(t.Context(), b))
			line += fmt.Sprintf(" %s %s", attached.Subject, attached)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// readAll verifies all content of an artifact.
func readAll(ctx context.Context, a oci.Artifact) error {
	return oci.Walk(ctx, a, oci.Limits{}, func(ctx context.Context, d oci.Descriptor, raw []byte) error {
		if raw != nil {
			return nil
		}
		r, err := a.Open(ctx, d)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, oci.VerifyReader(r, d))
		return errors.Join(err, r.Close())
	})
}

// relocated returns the names of artifacts below a prefix.
func relocated(t testing.TB, refs []oci.Reference, prefix string) []oci.Reference {
	t.Helper()
	var out []oci.Reference
	for _, ref := range refs {
		to, err := bundle.Relocate(ref, prefix)
		out = append(out, must(t, to, err))
	}
	return out
}

func sameBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%d bytes differ from the %d that were expected", len(got), len(want))
	}
}
