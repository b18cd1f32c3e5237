package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// hardening: A16
func TestCaptivePortalIsNotARegistry(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>please log in</html>")
		return true
	}
	r := testRemote(t, nil)
	ocitest.WantCode(t, read(t, r, f.Ref("v1")), oci.ErrUnexpectedMediaType)
	_, err := r.Tags(t.Context(), f.Ref("v1"))
	ocitest.WantCode(t, err, oci.ErrUnexpectedMediaType)
	ocitest.WantCode(t, read(t, r, f.Ref("v1").WithDigest(oci.DigestOf(nil))), oci.ErrDigestMismatch)
}

// hardening: A17
func TestTags(t *testing.T) {
	f := ocitest.NewRegistry(t)
	pages := 0
	var link func(page int) string
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		pages++
		if l := link(pages); l != "" {
			w.Header().Set("Link", l)
		}
		_, _ = fmt.Fprintf(w, `{"tags":["v1.0.%d","latest","not a tag","v1.0.%d"]}`, pages, pages)
		return true
	}
	r := testRemote(t, nil)
	list := func(t *testing.T, l func(int) string) ([]string, error) {
		t.Helper()
		pages, link = 0, l
		return r.Tags(t.Context(), f.Ref("v1"))
	}
	t.Run("Pages", func(t *testing.T) {
		got, err := list(t, func(page int) string {
			if page == 3 {
				return ""
			}
			return fmt.Sprintf(`</v2/acme/pkg/tags/list?n=1000&last=%d>; rel="next"`, page)
		})
		if err != nil || strings.Join(got, " ") != "latest v1.0.1 v1.0.2 v1.0.3" {
			t.Errorf("%v %v", got, err)
		}
	})
	for name, l := range map[string]func(int) string{
		"Circle":      func(page int) string { return fmt.Sprintf(`<?last=%d>; rel="next"`, page%2) },
		"Endless":     func(page int) string { return fmt.Sprintf(`<?last=%d>; rel="next"`, page) },
		"AnotherHost": func(int) string { return `<https://evil.test/v2/acme/pkg/tags/list>; rel="next"` },
		"AnotherPath": func(int) string { return `</v2/other/tags/list>; rel="next"` },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := list(t, l)
			ocitest.WantCode(t, err, ErrTagList)
			if pages > maxPages {
				t.Errorf("%d pages", pages)
			}
		})
	}
}

// A list of 100,000 tags is read page by page, and each tag is listed once. A page that is too large is an error
// of the list, and not a shorter list.
//
// hardening: A17
func TestManyTagsAreReadInPages(t *testing.T) {
	const perPage = 1000
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		page, _ := strconv.Atoi(r.URL.Query().Get("last"))
		if page < maxPages-1 {
			w.Header().Set("Link", fmt.Sprintf(`<?last=%d>; rel="next"`, page+1))
		}
		tags := []string{"v0.0.0"}
		for i := range perPage {
			tags = append(tags, fmt.Sprintf("v0.%d.%d", page, i))
		}
		_, _ = io.WriteString(w, `{"tags":["`+strings.Join(tags, `","`)+`"]}`)
		return true
	}
	r := testRemote(t, nil)
	if got, err := r.Tags(t.Context(), f.Ref("v1")); err != nil || len(got) != maxPages*perPage {
		t.Errorf("%d tags, %v", len(got), err)
	}
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, `{"tags":["v1.0.0"`+strings.Repeat(" ", int(r.opts.Limits.Manifest))+`]}`)
		return true
	}
	got, err := r.Tags(t.Context(), f.Ref("v1"))
	ocitest.WantCode(t, err, ErrTagList)
	if len(got) > 0 {
		t.Errorf("a part of the list: %d tags", len(got))
	}
}

// hardening: A2, A20
func TestDigestStaysReadableWithoutTag(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	r := testRemote(t, nil)
	planned, err := r.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: Other\n")})
	if err != nil {
		t.Fatal(err)
	}
	f.Publish(t, moved, "v1")
	m, err := r.Fetch(t.Context(), ref.WithDigest(planned.Digest), storetest.New(t), FetchOptions{})
	if err != nil || m.Digest != planned.Digest {
		t.Errorf("%s %v", m.Digest, err)
	}
	if now, err := r.Resolve(t.Context(), ref); err != nil || now.Digest == planned.Digest {
		t.Errorf("the tag still points to %s (%v)", now.Digest, err)
	}
}

func TestRegistryThatIsNotThere(t *testing.T) {
	err := read(t, testRemote(t, nil), oci.MustParseReference(port.Free(t)+"/acme/pkg:v1"))
	ocitest.WantCode(t, err, ErrRegistryUnavailable)
}

// hardening: F3
func TestTagNotFoundNamesNeighbors(t *testing.T) {
	f := ocitest.NewRegistry(t)
	for _, tag := range []string{"v1.0.0", "v1.1.0", "v2.0.0", "edge"} {
		f.Publish(t, ocitest.Hello(t), tag)
	}
	err := read(t, testRemote(t, nil), f.Ref("v1.0.1"))
	ocitest.WantCode(t, err, ErrTagNotFound)
	if do := errcode.From(err).Do; !strings.Contains(do, "v1.0.0") {
		t.Errorf("advice %q", do)
	}
	err = read(t, testRemote(t, nil), f.Ref("v7.0.0"))
	if do := errcode.From(err).Do; !strings.Contains(do, " v2.0.0, v1.1.0, v1.0.0.") {
		t.Errorf("advice %q", do)
	}
	// The newest is among them, also if its spelling differs more.
	f.Publish(t, ocitest.Hello(t), "v10.20.30")
	err = read(t, testRemote(t, nil), f.Ref("v7.0.9"))
	if do := errcode.From(err).Do; !strings.Contains(do, " v10.20.30, v2.0.0, v1.0.0.") {
		t.Errorf("advice %q", do)
	}
}

// Only versions and latest are neighbors: not tags of artifacts that refer to a version, and not those that a server
// sets for itself.
func TestTagNotFoundNamesNoArtifacts(t *testing.T) {
	f := ocitest.NewRegistry(t)
	for _, tag := range []string{"v1.0.0", "sha256-" + strings.Repeat("a", 64) + ".status", "sha256-" +
		strings.Repeat("a", 64), "lease"} {
		f.Publish(t, ocitest.Hello(t), tag)
	}
	if do := errcode.From(read(t, testRemote(t, nil), f.Ref("leas"))).Do; do != "Use an existing tag, such as v1.0.0." {
		t.Errorf("advice %q", do)
	}
	err := read(t, testRemote(t, nil), f.Ref("v9.9.9"))
	ocitest.WantCode(t, err, ErrTagNotFound)
	if do := errcode.From(err).Do; do != "Use an existing tag, such as v1.0.0." {
		t.Errorf("advice %q", do)
	}
}

// A tag that the registry lists and does not serve is not advised: its content is deleted or damaged.
func TestTagWithoutContentIsExplained(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Publish(t, ocitest.Hello(t), "v1.0.0")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		isManifest := strings.Contains(r.URL.Path, "/manifests/")
		if isManifest {
			http.NotFound(w, r)
		}
		return isManifest
	}
	err := read(t, testRemote(t, nil), f.Ref("v1.0.0"))
	ocitest.WantCode(t, err, ErrTagNotFound)
	if do := errcode.From(err).Do; !strings.HasPrefix(do, "The registry lists the tag and does not serve its content") {
		t.Errorf("advice %q", do)
	}
}

// A repository without tags is reported as missing by reads too, as by lists of its tags.
func TestMissingRepositoryIsReported(t *testing.T) {
	f := ocitest.NewRegistry(t)
	err := read(t, testRemote(t, nil), f.Ref("v1.0.0"))
	ocitest.WantCode(t, err, ErrRepositoryNotFound)
	ocitest.WantCode(t, err, ErrTagNotFound)
}

// Requests cost the user time and count against registry quotas.
func TestRequests(t *testing.T) {
	f := ocitest.NewRegistry(t)
	img := ocitest.Hello(t)
	ref := f.Publish(t, img, "v1")
	r := testRemote(t, nil)
	store := storetest.New(t)
	if _, _, err := fetchYAML(t.Context(), r, store, ref); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HEAD /v2/acme/pkg/manifests/v1",
		"GET /v2/acme/pkg/manifests/" + img.Digest().String(),
		"GET /v2/acme/pkg/blobs/" + ocitest.Layers(t, img)[0].Digest.String(),
	}
	if got := strings.Join(f.Requests, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("cold:\n%s", got)
	}
	f.Requests = nil
	if _, _, err := fetchYAML(t.Context(), r, store, ref.WithDigest(img.Digest())); err != nil {
		t.Fatal(err)
	}
	if len(f.Requests) != 0 {
		t.Errorf("warm: %v", f.Requests)
	}
}

func TestCancelledRequest(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err := testRemote(t, nil).Resolve(ctx, f.Ref("v1"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestSharedContentIsFetchedOnce(t *testing.T) {
	f := ocitest.NewRegistry(t)
	img := ocitest.Hello(t)
	ref := f.Publish(t, img, "v1").WithDigest(img.Digest())
	r, store := testRemote(t, nil), storetest.New(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := r.Fetch(t.Context(), ref, store, FetchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := f.Count("/blobs/"); n != 1 {
		t.Errorf("the layer was fetched %d times", n)
	}
}

// A GET by tag whose header names other content than its body.
//
// hardening: B3
func TestDigestHeaderIsVerified(t *testing.T) {
	f := ocitest.NewRegistry(t)
	img := ocitest.Hello(t)
	ref := f.Publish(t, img, "v1")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		w.Header().Set("Content-Type", string(oci.MediaTypeOCIManifest))
		w.Header().Set("Docker-Content-Digest", ocitest.EmptyDigest)
		_, _ = w.Write(img.RawManifest())
		return true
	}
	_, err := testRemote(t, nil).Resolve(t.Context(), ref)
	ocitest.WantCode(t, err, oci.ErrDigestMismatch)
}
