package cli_test

import (
	"io"
	"log"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	commands "github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// newNote returns an artifact without layers, with a subject.
func newNote(t *testing.T, subject oci.Descriptor, artifactType string) oci.Artifact {
	t.Helper()
	empty := []byte("{}")
	config := oci.DescriptorOf("application/vnd.oci.empty.v1+json", empty)
	a, err := image.NewArtifact(oci.Document{
		ArtifactType: artifactType, Config: &config, Layers: []oci.Descriptor{config},
		Subject: &oci.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	}, empty)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// referrerRegistries are handlers of registries with and without the referrers API.
func referrerRegistries(t *testing.T) map[string]http.Handler {
	t.Helper()
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

// signed is a package with artifacts that belong to it.
type signed struct {
	root oci.Digest
	// referrers are the artifacts by their subjects, and tags those of cosign.
	referrers map[oci.Digest]oci.Digest
	tags      map[string]oci.Digest
}

// names are the parts of the output for each artifact.
func (s signed) names() []string {
	var names []string
	for tag := range s.tags {
		names = append(names, tag)
	}
	for _, d := range s.referrers {
		names = append(names, d.Short())
	}
	slices.Sort(names)
	return names
}

// pushSigned pushes an index of two platforms with artifacts that belong to the index, to one of its manifests, and
// to another artifact.
func pushSigned(t *testing.T, c *remote.Client, ref oci.Reference) signed {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var images []*image.Image
	for _, arch := range []string{"amd64", "arm64"} {
		built, err := image.Build(t.Context(), image.Input{
			PackageYAML: []byte("kind: Provider\n# " + arch + "\n"), Platform: oci.Platform{OS: "linux", Architecture: arch},
		})
		must(err)
		images = append(images, built)
	}
	index, err := image.NewIndex(images...)
	must(err)
	_, err = c.Push(t.Context(), ref, index)
	must(err)
	s := signed{root: index.Root().Digest, referrers: map[oci.Digest]oci.Digest{}, tags: map[string]oci.Digest{}}
	attach := func(subject oci.Descriptor) oci.Artifact {
		n := newNote(t, subject, "application/vnd.test.note")
		_, err := c.Attach(t.Context(), ref, n)
		must(err)
		s.referrers[subject.Digest] = n.Root().Digest
		return n
	}
	tag := func(subject oci.Digest, suffix string) {
		a, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: " + subject.Short() + suffix + "\n")})
		must(err)
		name := oci.ArtifactTag(subject, suffix)
		_, err = c.Push(t.Context(), ref.WithTag(name), a)
		must(err)
		s.tags[name] = a.Root().Digest
	}
	first := attach(index.Root())
	attach(first.Root())
	attach(images[1].Root())
	tag(index.Root().Digest, ".sig")
	tag(images[0].Root().Digest, ".att")
	tag(first.Root().Digest, ".sig")
	tag(s.tags[oci.ArtifactTag(index.Root().Digest, ".sig")], ".sbom")
	return s
}

// A copy between registries takes all that belongs to the package with it, and lists it, whether the registries have
// the referrers API.
func TestCopyTakesSignatures(t *testing.T) {
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	for source, from := range referrerRegistries(t) {
		ref := oci.MustParseReference(strings.TrimPrefix(port.Serve(t, from).URL, "http://") + "/a/b:v1")
		want := pushSigned(t, client, ref)
		for target, to := range referrerRegistries(t) {
			t.Run("from one "+source+" to one "+target, func(t *testing.T) {
				copied := oci.MustParseReference(strings.TrimPrefix(port.Serve(t, to).URL, "http://") + "/c/d:v1")
				for range 2 {
					code, stdout, stderr := commands.Output(t, "copy", ref.String(), copied.String())
					if code != 0 || strings.TrimSpace(stdout) != copied.WithDigest(want.root).String() {
						t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
					}
					for _, name := range want.names() {
						if !strings.Contains(stderr, name) {
							t.Errorf("the output does not name %s: %s", name, stderr)
						}
					}
				}
				for subject, d := range want.referrers {
					found, err := client.Referrers(t.Context(), copied.WithDigest(subject), "")
					if err != nil || len(found) != 1 || found[0].Digest != d {
						t.Errorf("the referrers of %s are %v, %v", subject.Short(), found, err)
					}
				}
				for tag, d := range want.tags {
					if got, err := client.Resolve(t.Context(), copied.WithTag(tag)); err != nil || got.Digest != d {
						t.Errorf("%s is %s, %v", tag, got.Digest.Short(), err)
					}
				}
			})
		}
	}
}

// A copy fails if the target refuses a signature, and the error names what is not copied. For a file, a note names it.
func TestCopyNamesWhatIsLeft(t *testing.T) {
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	ref := oci.MustParseReference(strings.TrimPrefix(port.Serve(t, localregistry.New(t)).URL, "http://") + "/a/b:v1")
	want := pushSigned(t, client, ref)
	plain := localregistry.New(t)
	host := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/sha256-") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		plain.ServeHTTP(w, r)
	})).URL, "http://")
	code, stdout, stderr := commands.Output(t, "copy", ref.String(), host+"/c/d:v1")
	if code == 0 || !strings.Contains(stdout, want.root.String()) ||
		!strings.Contains(stderr, "the package is copied, but not ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	_, left, _ := strings.Cut(stderr, "the package is copied, but not ")
	for tag := range want.tags {
		if !strings.Contains(left, tag) {
			t.Errorf("the error does not name %s: %s", tag, left)
		}
	}
	for _, d := range want.referrers {
		if strings.Contains(left, "("+d.Short()+")") {
			t.Errorf("the error names %s, which is copied: %s", d.Short(), left)
		}
	}
	code, _, stderr = commands.Output(t, "copy", ref.String(), filepath.Join(t.TempDir(), "x.xpkg"))
	for _, name := range want.names() {
		if code != 0 || !strings.Contains(stderr, name) {
			t.Errorf("a copy to a file does not name %s: %s", name, stderr)
		}
	}
}

// A package without signatures is copied with the same output as before.
func TestCopyWithoutSignatures(t *testing.T) {
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	ref := oci.MustParseReference(strings.TrimPrefix(port.Serve(t, localregistry.New(t)).URL, "http://") + "/a/b:v1")
	built, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: Provider\n")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(t.Context(), ref, built); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{ref.Registry + "/c/d:v1", ref.Registry + "/a/b:v2", filepath.Join(t.TempDir(), "x.xpkg")} {
		if code, stdout, stderr := commands.Output(t, "copy", ref.String(), to); code != 0 || stderr != "" {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
	}
}

// A copy fails if the source denies the list of what belongs to the package: an empty list would lose signatures.
func TestCopyFailsWithoutTheListOfReferrers(t *testing.T) {
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	plain := localregistry.New(t)
	denies := false
	host := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if denies && strings.Contains(r.URL.Path, "/referrers/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		plain.ServeHTTP(w, r)
	})).URL, "http://")
	ref := oci.MustParseReference(host + "/a/b:v1")
	pushSigned(t, client, ref)
	denies = true
	code, _, stderr := commands.Output(t, "copy", ref.String(), host+"/c/d:v1")
	if code == 0 || !strings.Contains(stderr, "what belongs to it, such as signatures, cannot be read") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
