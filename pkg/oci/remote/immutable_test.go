package remote

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// refusal is the response of a registry to a push of other content to a tag.
type refusal struct {
	status int
	body   string
	// isStated reports whether the response states that the tag does not change.
	isStated bool
}

// refusals are the responses of registries that do not change tags.
var refusals = map[string]refusal{
	"ECR": {
		400, `{"errors":[{"code":"TAG_INVALID","message":"tag already exists and the repository is immutable"}]}`, true,
	},
	"Harbor": {
		412,
		`{"errors":[{"code":"PRECONDITION","message":"Failed to process request due to 'a:v1' configured as immutable."}]}`,
		true,
	},
	"ACR": {
		405, `{"errors":[{"code":"UNSUPPORTED","message":"The operation is not allowed as tag 'v1' is write-locked."}]}`,
		true,
	},
	"Hub": {403, `{"errors":[{"code":"DENIED","message":"tag v1 cannot be overwritten"}]}`, true},
	"xpkg": {
		409, `{"errors":[{"code":"DENIED","message":"a:v1 is 1 and cannot become 2: versions never change"}]}`, true,
	},
	"silent":  {409, ``, false},
	"silent2": {412, `immutable`, false},
}

// immutableRegistry returns a registry that refuses each write to a tag that exists, as those that compare no content
// do.
func immutableRegistry(t *testing.T, refuse func(http.ResponseWriter)) *ocitest.Registry {
	t.Helper()
	target, seen := registry.New(registry.Logger(ocitest.Quiet)), map[string]bool{}
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		_, tag, found := strings.Cut(r.URL.Path, "/manifests/")
		if found && r.Method == http.MethodPut && !strings.HasPrefix(tag, "sha256:") {
			if seen[r.URL.Path] {
				refuse(w)
				return true
			}
			seen[r.URL.Path] = true
		}
		target.ServeHTTP(w, r)
		return true
	}
	return f
}

func respond(r refusal) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, r.body)
	}
}

// A push of what a tag has already succeeds without an upload. Other content for the tag of an immutable registry is
// one error, whatever the registry responds.
func TestPushToImmutableTags(t *testing.T) {
	other, err := image.Build(t.Context(), image.Input{PackageYAML: []byte("kind: Other\n")})
	ocitest.Must(t, err)
	for name, refusal := range refusals {
		for _, a := range []oci.Artifact{ocitest.Hello(t), ocitest.TwoPlatforms(t)} {
			f := immutableRegistry(t, respond(refusal))
			var unchanged []oci.Reference
			r := testRemote(t, func(o *Options) {
				o.Unchanged = func(ref oci.Reference) { unchanged = append(unchanged, ref) }
			})
			_, err := r.Push(t.Context(), f.Ref("v1"), a)
			ocitest.Must(t, err)
			if f.Requests = nil; len(unchanged) != 0 {
				t.Errorf("%s: the first push changed nothing", name)
			}
			digest, err := r.Push(t.Context(), f.Ref("v1"), a)
			if err != nil || digest != a.Root().Digest || f.Count("PUT ")+f.Count("POST ") != 0 {
				t.Errorf("%s: the second push: %s, %v, after %v", name, digest, err, f.Requests)
			}
			if len(unchanged) != 1 || unchanged[0] != f.Ref("v1") {
				t.Errorf("%s: unchanged are %v", name, unchanged)
			}
			_, err = r.Push(t.Context(), f.Ref("v1"), other)
			ocitest.WantCode(t, err, ErrImmutable)
			if want := " is " + a.Root().Digest.Short() + " and cannot become "; !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not contain %q", name, err, want)
			}
			if do := errcode.From(err).Do; !strings.Contains(do, "new version") {
				t.Errorf("%s: advice %q", name, do)
			}
		}
	}
}

// A tag that cannot be read does not hide why a push is refused, and other refusals keep their own error.
func TestRefusedPushes(t *testing.T) {
	other := map[string]refusal{
		"invalid": {400, `{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid"}]}`, false},
		"denied":  {403, `{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}`, false},
		"quota":   {403, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`, false},
		"broken":  {500, ``, false},
	}
	for _, cases := range []map[string]refusal{refusals, other} {
		for name, refusal := range cases {
			f := faultyTarget(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case !strings.Contains(r.URL.Path, "/manifests/"):
					return false
				case r.Method == http.MethodPut:
					respond(refusal)(w)
				default:
					w.WriteHeader(http.StatusForbidden)
				}
				return true
			})
			_, err := testRemote(t, nil).Push(t.Context(), f.Ref("v1"), ocitest.Hello(t))
			if got := errcode.From(err).Code.Name == ErrImmutable.Name; err == nil || got != refusal.isStated {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Another client can push the same content at the same time.
func TestPushAfterAnotherClient(t *testing.T) {
	img, pushed := ocitest.Hello(t), false
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifests/v1"):
			f.ServeManifest("v1", img.Root().MediaType, img.RawManifest())
			pushed = true
			w.WriteHeader(http.StatusConflict)
		case r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/"):
			w.WriteHeader(http.StatusOK)
		default:
			return false
		}
		return true
	}
	if _, err := testRemote(t, nil).Push(t.Context(), f.Ref("v1"), img); err != nil || !pushed {
		t.Errorf("pushed: %t, %v", pushed, err)
	}
}

// A tag that may change is moved, also back, and content that was lost is uploaded again.
func TestPushToTagsThatChange(t *testing.T) {
	f := faultyTarget(t, func(http.ResponseWriter, *http.Request) bool { return false })
	r := testRemote(t, nil)
	for i, a := range []oci.Artifact{ocitest.Hello(t), ocitest.TwoPlatforms(t), ocitest.Hello(t)} {
		_, err := r.Push(t.Context(), f.Ref("v1"), a)
		ocitest.Must(t, err)
		if d, err := r.Resolve(t.Context(), f.Ref("v1")); err != nil || d.Digest != a.Root().Digest {
			t.Errorf("push %d: the tag is %s, %v", i, d.Digest, err)
		}
	}
}

func TestPushRestoresLostContent(t *testing.T) {
	index := ocitest.TwoPlatforms(t)
	lost, restored := "", 0
	f := faultyTarget(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && (strings.HasSuffix(r.URL.Path, lost) || r.URL.Query().Get("digest") == lost) {
			restored++
		}
		isLost := lost != "" && r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, lost)
		if isLost {
			w.WriteHeader(http.StatusNotFound)
		}
		return isLost
	})
	r := testRemote(t, func(o *Options) {
		o.Unchanged = func(oci.Reference) { t.Error("a push that restores content is reported as unchanged") }
	})
	_, err := r.Push(t.Context(), f.Ref("v1"), index)
	ocitest.Must(t, err)
	for d := range contentOf(t, index) {
		lost, restored = d.String(), 0
		if _, err := r.Push(t.Context(), f.Ref("v1"), index); err != nil || restored != 1 {
			t.Errorf("%s: %d uploads, %v", d, restored, err)
		}
	}
}

// contentOf returns the digests of all content of an artifact, except for the root.
func contentOf(t *testing.T, a oci.Artifact) map[oci.Digest]bool {
	t.Helper()
	all := map[oci.Digest]bool{}
	err := oci.Walk(t.Context(), a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, _ []byte) error {
		all[d.Digest] = d.Digest != a.Root().Digest
		return nil
	})
	ocitest.Must(t, err)
	delete(all, a.Root().Digest)
	return all
}
