package remote_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// newNote returns an artifact without layers, with a subject.
func newNote(t testing.TB, subject oci.Descriptor, artifactType, text string) oci.Artifact {
	t.Helper()
	empty := []byte("{}")
	config := oci.DescriptorOf("application/vnd.oci.empty.v1+json", empty)
	a, err := image.NewArtifact(oci.Document{
		ArtifactType: artifactType, Config: &config, Layers: []oci.Descriptor{config},
		Subject:     &oci.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations: map[string]string{"text": text},
	}, empty)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// registries are handlers of registries with and without the referrers API.
func registries(t testing.TB) map[string]http.Handler {
	plain := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	return map[string]http.Handler{
		"with the API": localregistry.New(t),
		"without the API": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/referrers/") {
				http.NotFound(w, r)
				return
			}
			plain.ServeHTTP(w, r)
		}),
	}
}

func TestAttachedArtifactsAreReferrersInEveryRegistry(t *testing.T) {
	for name, handler := range registries(t) {
		t.Run(name, func(t *testing.T) {
			host := strings.TrimPrefix(port.Serve(t, handler).URL, "http://")
			client := remote.New(remote.Options{})
			t.Cleanup(client.Close)
			ref := oci.MustParseReference(host + "/a/b:v1")
			subject, err := image.BuildExtensions(nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Push(t.Context(), ref, subject); err != nil {
				t.Fatal(err)
			}
			target := ref.WithDigest(subject.Root().Digest)
			if found, err := client.Referrers(t.Context(), target, ""); err != nil || len(found) != 0 {
				t.Fatalf("before the first: %v, %v", found, err)
			}
			want := map[oci.Digest]bool{}
			for _, text := range []string{"first", "second", "second"} {
				digest, err := client.Attach(t.Context(), ref, newNote(t, subject.Root(), "application/vnd.test.note", text))
				if err != nil {
					t.Fatal(err)
				}
				want[digest] = true
			}
			if _, err := client.Attach(
				t.Context(), ref, newNote(t, subject.Root(), "application/vnd.test.other", "other"),
			); err != nil {
				t.Fatal(err)
			}
			found, err := client.Referrers(t.Context(), target, "application/vnd.test.note")
			if err != nil || len(found) != len(want) {
				t.Fatalf("got %d, %v; want %d", len(found), err, len(want))
			}
			for _, d := range found {
				if !want[d.Digest] || d.Annotations["text"] == "" {
					t.Errorf("unexpected referrer %+v", d)
				}
			}
		})
	}
}

func TestConcurrentAttachmentsAreNotLost(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many requests")
	}
	host := strings.TrimPrefix(port.Serve(t, registries(t)["with the API"]).URL, "http://")
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	ref := oci.MustParseReference(host + "/a/b:v1")
	subject, err := image.BuildExtensions(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(t.Context(), ref, subject); err != nil {
		t.Fatal(err)
	}
	const count = 8
	var writers sync.WaitGroup
	for i := range count {
		writers.Go(func() {
			if _, err := client.Attach(
				t.Context(), ref, newNote(t, subject.Root(), "application/vnd.test.note", fmt.Sprint(i)),
			); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if found, err := client.Referrers(t.Context(), ref.WithDigest(subject.Root().Digest), ""); err != nil ||
		len(found) != count {
		t.Errorf("got %d, %v; want %d", len(found), err, count)
	}
}

func TestMalformedReferrersAreErrorsOrOmitted(t *testing.T) {
	good := oci.DigestOf([]byte("x")).String()
	for name, c := range map[string]struct {
		body string
		want int
		bad  bool
	}{
		"no JSON":             {`{`, 0, true},
		"another algorithm":   {`{"manifests":[{"digest":"sha512:abc"},{"digest":"` + good + `"}]}`, 1, false},
		"an entry without it": {`{"manifests":[{},null,7]}`, 0, false},
		"the same twice":      {`{"manifests":[{"digest":"` + good + `"},{"digest":"` + good + `"}]}`, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", string(oci.MediaTypeOCIIndex))
				_, _ = io.WriteString(w, c.body)
			}))
			found, err := referrersOf(t, server)
			if (err != nil) != c.bad || len(found) != c.want {
				t.Errorf("got %v, %v", found, err)
			}
		})
	}
}

func referrersOf(t testing.TB, server *httptest.Server) ([]oci.Descriptor, error) {
	t.Helper()
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	ref := oci.MustParseReference(strings.TrimPrefix(server.URL, "http://") + "/a/b:v1")
	return client.Referrers(t.Context(), ref.WithDigest(oci.DigestOf([]byte("subject"))), "")
}
