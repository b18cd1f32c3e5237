package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/bundle"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Whatever is saved is equal after it is loaded, in registries with and without the referrers API. Two bundles of the
// same content have equal bytes, and a second load sends nothing.
func TestSaveAndLoad(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			sources := []*counted{ours(t), withReferrers(http.StatusNotFound), withReferrers(http.StatusMethodNotAllowed)}
			c := newClosure(t, random, serve(t, sources[seed%3]), 1+random.IntN(6))
			first := saved(t, c.items(t, random), bundle.SaveOptions{})
			second := saved(t, c.items(t, random), bundle.SaveOptions{})
			sameBytes(t, read(t, second), read(t, first))
			want := state(t, c.client, c.refs)
			for name, target := range map[string]*counted{"ours": ours(t), "none": withReferrers(http.StatusNotFound)} {
				prefix := serve(t, target) + "/mirror"
				check(t, load(t.Context(), newClient(t, nil), first, prefix))
				if got := state(t, newClient(t, nil), relocated(t, c.refs, prefix)); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
				}
				target.writes.Store(0)
				target.sent.Store(0)
				check(t, load(t.Context(), newClient(t, nil), first, prefix))
				if n, bytes := target.writes.Load(), target.sent.Load(); n != 0 || bytes != 0 {
					t.Errorf("%s: a second load makes %d writes of %d bytes", name, n, bytes)
				}
			}
		})
	}
}

// The registry of CNCF distribution has what was saved, which it mounts between repositories.
func TestLoadIntoDistribution(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newClosure(t, random, serve(t, ours(t)), 6)
	file, prefix := saved(t, c.items(t, random), bundle.SaveOptions{}), dockerregistry.Start(t)+"/mirror"
	for range 2 {
		check(t, load(t.Context(), newClient(t, nil), file, prefix))
	}
	want := state(t, c.client, c.refs)
	if got := state(t, newClient(t, nil), relocated(t, c.refs, prefix)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A delta after its base has the result of a full bundle. Without its base nothing is uploaded.
func TestDelta(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			c := newClosure(t, random, serve(t, ours(t)), 6)
			items := c.items(t, random)
			old := saved(t, items[:3], bundle.SaveOptions{})
			base, err := bundle.Open(old)
			check(t, err)
			t.Cleanup(func() { check(t, base.Close()) })
			o := bundle.SaveOptions{Since: base, SinceName: "old.tar"}
			delta := saved(t, items, o)
			sameBytes(t, read(t, saved(t, c.items(t, random), o)), read(t, delta))
			if full := saved(t, items, bundle.SaveOptions{}); len(read(t, delta)) >= len(read(t, full)) {
				t.Errorf("the delta has %d bytes, and the bundle %d", len(read(t, delta)), len(read(t, full)))
			}
			target := ours(t)
			prefix := serve(t, target)
			err = load(t.Context(), newClient(t, nil), delta, prefix)
			if !errors.Is(err, bundle.ErrBaseMissing) || !strings.Contains(err.Error(), "old.tar") || target.writes.Load() != 0 {
				t.Fatalf("without the base: %v, and %d writes", err, target.writes.Load())
			}
			check(t, load(t.Context(), newClient(t, nil), old, prefix))
			check(t, load(t.Context(), newClient(t, nil), delta, prefix))
			want := state(t, c.client, c.refs)
			if got := state(t, newClient(t, nil), relocated(t, c.refs, prefix)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			next, err := bundle.Open(delta)
			check(t, err)
			t.Cleanup(func() { check(t, next.Close()) })
			second := saved(t, items, bundle.SaveOptions{Since: next, SinceName: "delta.tar"})
			check(t, load(t.Context(), newClient(t, nil), second, prefix))
		})
	}
}

// A registry that does not mount blobs gets those of the base from the repository that has them.
func TestDeltaWithoutMounts(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 3))
	c := newClosure(t, random, serve(t, ours(t)), 6)
	items := c.items(t, random)
	old := saved(t, items[:3], bundle.SaveOptions{})
	base, err := bundle.Open(old)
	check(t, err)
	t.Cleanup(func() { check(t, base.Close()) })
	delta := saved(t, items, bundle.SaveOptions{Since: base, SinceName: "old.tar"})
	target := ours(t)
	inner, refused := target.Handler, 0
	target.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("mount") {
			refused++
			w.WriteHeader(http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	})
	prefix := serve(t, target)
	check(t, load(t.Context(), newClient(t, nil), old, prefix))
	check(t, load(t.Context(), newClient(t, nil), delta, prefix))
	want := state(t, c.client, c.refs)
	if got := state(t, newClient(t, nil), relocated(t, c.refs, prefix)); got != want || refused == 0 {
		t.Errorf("%d mounts were refused; got\n%s\nwant\n%s", refused, got, want)
	}
}

// A save that fails at any change of the disk continues, and has the same result.
func TestSaveContinues(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	c := newClosure(t, random, serve(t, ours(t)), 4)
	items := c.items(t, random)
	want := read(t, saved(t, items, bundle.SaveOptions{}))
	killed := errors.New("killed")
	for at := int64(1); ; at++ {
		file := filepath.Join(t.TempDir(), "bundle.tar")
		var changes atomic.Int64
		first, err := bundle.Save(t.Context(), file, items, bundle.SaveOptions{Before: func(string) error {
			if changes.Add(1) >= at {
				return killed
			}
			return nil
		}})
		if err == nil {
			if at < 100 {
				t.Fatalf("a save makes %d changes", at)
			}
			return
		}
		if !errors.Is(err, killed) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("a save that was killed at change %d wrote the bundle", at)
		}
		second, err := bundle.Save(t.Context(), file, items, bundle.SaveOptions{})
		check(t, err)
		sameBytes(t, read(t, file), want)
		if first.Fetched > int64(len(want))/2 && second.Fetched > int64(len(want))/2+8000 {
			t.Errorf("a save reads %d bytes, and then %d", first.Fetched, second.Fetched)
		}
	}
}

// An unfinished bundle that was cut or damaged anywhere continues, and has the same result.
func TestSaveContinuesFromAnyByte(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	c := newClosure(t, random, serve(t, ours(t)), 2)
	items := c.items(t, random)
	file := saved(t, items, bundle.SaveOptions{})
	want := read(t, file)
	for cut := 0; cut <= len(want)+600; cut += 1 + random.IntN(600) {
		partial := append(append([]byte{}, want...), make([]byte, 600)...)[:cut]
		if cut > 0 && cut%2 == 0 {
			partial[random.IntN(cut)] ^= 1
		}
		check(t, os.WriteFile(file+bundle.PartialSuffix, partial, 0o600))
		_, err := bundle.Save(t.Context(), file, items, bundle.SaveOptions{})
		check(t, err)
		sameBytes(t, read(t, file), want)
	}
}

// killing is a transport that fails from a request on, before or after the registry has it.
type killing struct {
	left  atomic.Int64
	after bool
}

var errKilled = errors.New("killed")

func (k *killing) RoundTrip(r *http.Request) (*http.Response, error) {
	left := k.left.Add(-1)
	if left < 0 || left == 0 && !k.after {
		return nil, errKilled
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if left == 0 && err == nil {
		err = errors.Join(errKilled, resp.Body.Close())
	}
	return resp, err
}

// A load that is killed at any request leaves no tag whose content is missing, and continues with the same result.
func TestLoadContinues(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	c := newClosure(t, random, serve(t, ours(t)), 3)
	file := saved(t, c.items(t, random), bundle.SaveOptions{})
	want := state(t, c.client, c.refs)
	for _, referrers := range []int{0, http.StatusNotFound} {
		for at := int64(1); ; at++ {
			target := ours(t)
			if referrers != 0 {
				target = withReferrers(referrers)
			}
			prefix := serve(t, target)
			k := &killing{after: at%2 == 0}
			k.left.Store(at)
			if load(t.Context(), newClient(t, k), file, prefix) == nil {
				if at < 30 {
					t.Fatalf("a load makes %d requests", at)
				}
				break
			}
			client, to := newClient(t, nil), relocated(t, c.refs, prefix)
			checkTags(t, client, to)
			check(t, load(t.Context(), newClient(t, nil), file, prefix))
			if got := state(t, client, to); got != want {
				t.Fatalf("after request %d: got\n%s\nwant\n%s", at, got, want)
			}
		}
	}
}

// checkTags fails if a tag refers to missing content.
func checkTags(t *testing.T, client *remote.Client, refs []oci.Reference) {
	t.Helper()
	for _, ref := range refs {
		tags, err := client.ExistingTags(t.Context(), ref)
		check(t, err)
		for _, tag := range tags {
			if oci.MustParseReference(ref.Name() + ":" + tag); isFallback(tag) {
				continue // An index of referrers, which does not own them.
			}
			a, err := client.Artifact(t.Context(), ref.WithTag(tag))
			check(t, err)
			check(t, readAll(t.Context(), a))
		}
	}
}

func isFallback(tag string) bool {
	_, ok := remote.ParseFallbackTag(tag)
	return ok
}

// Signatures that a registry does not tell are never lost silently.
func TestUnknownReferrers(t *testing.T) {
	for status, fails := range map[int]bool{
		http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusInternalServerError: true,
		http.StatusNotFound: false, http.StatusMethodNotAllowed: false, http.StatusNotImplemented: false,
	} {
		source := withReferrers(http.StatusNotFound)
		random := rand.New(rand.NewPCG(1, 9))
		c := newClosure(t, random, serve(t, source), 3)
		items := c.items(t, random)
		want := read(t, saved(t, items, bundle.SaveOptions{}))
		source.referrers = status
		file := filepath.Join(t.TempDir(), "bundle.tar")
		_, err := bundle.Save(t.Context(), file, items, bundle.SaveOptions{})
		if fails != errors.Is(err, signature.ErrUnknown) || !fails && err != nil {
			t.Errorf("status %d: %v", status, err)
		}
		if err == nil {
			sameBytes(t, read(t, file), want)
		}
	}
}

// A bundle for a platform has the indexes with their digests, and only the images of the platform and those from which
// packages are read.
func TestPlatforms(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 10))
	c := newClosure(t, random, serve(t, ours(t)), 6)
	items := c.items(t, random)
	file := saved(t, items, bundle.SaveOptions{Platforms: []oci.Platform{{OS: "linux", Architecture: "arm64"}}})
	if all := saved(t, items, bundle.SaveOptions{}); len(read(t, file)) >= len(read(t, all)) {
		t.Fatalf("%d bytes for one platform, %d for all", len(read(t, file)), len(read(t, all)))
	}
	if err := load(t.Context(), newClient(t, nil), file, serve(t, ours(t))); !errors.Is(err, bundle.ErrPartialRefused) {
		t.Fatalf("a registry that refuses indexes without their images: %v", err)
	}
	prefix := serve(t, &counted{Handler: &sparse{Handler: ours(t), indexes: map[string][]byte{}}})
	for range 2 {
		check(t, load(t.Context(), newClient(t, nil), file, prefix))
	}
	client := newClient(t, nil)
	for i, ref := range relocated(t, c.refs, prefix) {
		a, err := client.Artifact(t.Context(), ref.WithTag(ref.Tag))
		check(t, err)
		if a.Root().Digest != c.refs[i].Digest {
			t.Errorf("%s is %s, want %s", ref, a.Root().Digest, c.refs[i].Digest)
		}
		_, err = oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
		check(t, err)
		if doc := documentOf(t, a); len(doc.Manifests) > 2 {
			_, err := client.Artifact(t.Context(), ref.WithTag("").WithDigest(doc.Manifests[2].Digest))
			if !errors.Is(err, oci.ErrManifestNotFound) {
				t.Errorf("%s has the image of another platform: %v", ref, err)
			}
		}
	}
}

// sparse is a registry that accepts an index without its images.
type sparse struct {
	http.Handler
	mu      sync.Mutex
	indexes map[string][]byte
}

func (s *sparse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mediaType := string(oci.MediaTypeOCIIndex)
	kept, isKept := s.indexes[r.URL.Path]
	switch {
	case r.Method == http.MethodPut && r.Header.Get("Content-Type") == mediaType && !strings.Contains(r.URL.Path, "/sha256-"):
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		at := r.URL.Path[:strings.LastIndex(r.URL.Path, "/")+1]
		s.indexes[r.URL.Path], s.indexes[at+oci.DigestOf(raw).String()] = raw, raw
		w.WriteHeader(http.StatusCreated)
	case isKept:
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", oci.DigestOf(kept).String())
		if r.Method == http.MethodGet {
			_, _ = w.Write(kept) // The client reports a failure.
		}
	default:
		s.Handler.ServeHTTP(w, r)
	}
}

func documentOf(t *testing.T, a oci.Artifact) *oci.Document {
	t.Helper()
	_, doc, err := oci.ReadDocument(t.Context(), a, a.Root(), oci.Limits{})
	return must(t, doc, err)
}

// Two processes do not write the same bundle.
func TestOneWriter(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 11))
	items := newClosure(t, random, serve(t, ours(t)), 2).items(t, random)
	file := filepath.Join(t.TempDir(), "bundle.tar")
	var second error
	var once atomic.Bool
	_, err := bundle.Save(t.Context(), file, items, bundle.SaveOptions{Before: func(string) error {
		if once.CompareAndSwap(false, true) {
			_, second = bundle.Save(t.Context(), file, items, bundle.SaveOptions{})
		}
		return nil
	}})
	check(t, err)
	if !errors.Is(second, bundle.ErrInUse) {
		t.Errorf("got %v, want %s", second, bundle.ErrInUse.Name)
	}
}
