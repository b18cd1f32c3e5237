package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// faultyTarget returns a foreign registry behind a fault.
func faultyTarget(t *testing.T, fault func(w http.ResponseWriter, r *http.Request) bool) *ocitest.Registry {
	t.Helper()
	f := ocitest.NewRegistry(t)
	target := registry.New(registry.Logger(ocitest.Quiet))
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !fault(w, r) {
			target.ServeHTTP(w, r)
		}
		return true
	}
	return f
}

func TestPushRetriesUploads(t *testing.T) {
	var broken atomic.Int64
	f := faultyTarget(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/blobs/uploads/") || broken.Add(1) > 2 {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, 10)
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	img := ocitest.Hello(t)
	r := testRemote(t, nil)
	ref := f.Ref("v1")
	if _, err := r.Push(t.Context(), ref, img); err != nil {
		t.Fatal(err)
	}
	if got, _, err := fetchYAML(t.Context(), r, storetest.New(t), ref); err != nil || string(got) != ocitest.HelloYAML {
		t.Errorf("%q %v", got, err)
	}
}

// TestPushReplacesADamagedBlob pushes to a registry that responds with an error to the HEAD of a blob until it is
// uploaded again, as one does whose disk was full.
func TestPushReplacesADamagedBlob(t *testing.T) {
	var uploaded atomic.Bool
	f := faultyTarget(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			uploaded.Store(true)
		}
		damaged := r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/") && !uploaded.Load()
		if damaged {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return damaged
	})
	if _, err := testRemote(t, nil).Push(t.Context(), f.Ref("v1"), ocitest.Hello(t)); err != nil || !uploaded.Load() {
		t.Errorf("uploaded: %t, %v", uploaded.Load(), err)
	}
}

func TestPushFailures(t *testing.T) {
	manifests := func(w http.ResponseWriter, r *http.Request, status int, body string) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
	tests := map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request) bool
		want  errcode.Code
		words string
	}{
		"Refused": {func(w http.ResponseWriter, r *http.Request) bool {
			return manifests(
				w, r, http.StatusBadRequest, `{"errors":[{"code":"MANIFEST_INVALID","message":"too \u001b[31mred"}]}`,
			)
		}, ErrRefused, "MANIFEST_INVALID: too [31mred"},
		"Denied": {func(w http.ResponseWriter, r *http.Request) bool {
			return manifests(w, r, http.StatusForbidden, `{}`)
		}, ErrUnauthorized, ""},
		"StoresSomethingElse": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				w.Header().Set("Docker-Content-Digest", ocitest.EmptyDigest)
			}
			return manifests(w, r, http.StatusCreated, "")
		}, oci.ErrDigestMismatch, ""},
		"NoLocation": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusAccepted)
			}
			return r.Method == http.MethodPost
		}, ErrRefused, ""},
		"UploadElsewhere": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", "http://169.254.169.254/upload")
				w.WriteHeader(http.StatusAccepted)
			}
			return r.Method == http.MethodPost
		}, ErrForbiddenAddress, ""},
		"RedirectedUpload": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			}
			return r.Method == http.MethodPut
		}, ErrRefused, "redirect"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := faultyTarget(t, tc.fault)
			_, err := testRemote(t, nil).Push(t.Context(), f.Ref("v1"), ocitest.Hello(t))
			ocitest.WantCode(t, err, tc.want)
			if !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%q does not say %q", err, tc.words)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var last [2]Transfer
	r := testRemote(t, func(o *Options) {
		o.Progress = func(p Transfer) {
			if p.Upload {
				last[0] = p
			} else {
				last[1] = p
			}
		}
	})
	ref := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/acme/pkg:v1")
	_, err := r.Push(t.Context(), ref, ocitest.Hello(t))
	ocitest.Must(t, err)
	ocitest.Must(t, read(t, r, ref))
	for _, p := range last {
		if p.Total == 0 || p.Done != p.Total || p.Digest.IsZero() {
			t.Errorf("%+v", p)
		}
	}
}

// A machine without a registry reads packages from its store.
func TestStoreWithoutNetwork(t *testing.T) {
	store := storetest.New(t)
	index := ocitest.TwoPlatforms(t)
	ocitest.Must(t, store.Add(t.Context(), index, oci.Limits{}))
	a, err := store.Artifact(t.Context(), index.Digest(), oci.Limits{})
	ocitest.Must(t, err)
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{OS: "linux", Architecture: "arm64"}, oci.Limits{})
	ocitest.Must(t, err)
	got, err := store.PackageYAML(t.Context(), m, oci.Limits{})
	if err != nil || !strings.HasSuffix(string(got), "# arm64\n") {
		t.Errorf("%q %v", got, err)
	}
	_, err = store.Artifact(t.Context(), oci.DigestOf(nil), oci.Limits{})
	ocitest.WantCode(t, err, oci.ErrBlobNotFound)
}

// Content that does not match its digest does not reach a registry.
func TestPushVerifies(t *testing.T) {
	img := ocitest.Hello(t)
	m, err := img.Manifest()
	ocitest.Must(t, err)
	layer := m.Layers[0]
	damaged := &assembly.Assembly{Desc: img.Root(), Parts: []oci.Artifact{img}}
	damaged.Add(layer.Digest, func(ctx context.Context) (io.ReadCloser, error) {
		r, err := img.Open(ctx, layer)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		data[len(data)/2] ^= 1
		return io.NopCloser(bytes.NewReader(data)), errors.Join(err, r.Close())
	})
	host := ocitest.MemoryRegistry(t)
	r := testRemote(t, nil)
	ref := oci.MustParseReference(host + "/acme/pkg:v1")
	_, err = r.Push(t.Context(), ref, damaged)
	ocitest.WantCode(t, err, oci.ErrDigestMismatch)
	_, err = r.Resolve(t.Context(), ref)
	ocitest.WantCode(t, err, ErrTagNotFound)
}

// A push succeeds with every status of success, every form of upload locations, and any answer to a HEAD.
func TestPushToUnusualRegistries(t *testing.T) {
	type odd struct {
		head, post, blob, manifest int
		location                   func(*http.Request) string
		digest                     string
	}
	cases := map[string]odd{
		"query":          {location: func(r *http.Request) string { return r.URL.Path + "id?_state=a%2Fb%3D&x=1" }},
		"absolute":       {location: func(r *http.Request) string { return "http://" + r.Host + r.URL.Path + "id?_state=x" }},
		"relative":       {location: func(*http.Request) string { return "id" }},
		"other digest":   {digest: "sha512:" + strings.Repeat("a", 128)},
		"no HEAD answer": {head: -1},
	}
	for _, status := range []int{200, 201, 202, 204} {
		cases[fmt.Sprintf("success %d", status)] = odd{post: status, blob: status, manifest: status}
	}
	for _, status := range []int{400, 401, 403, 404, 405, 500, 501, 502} {
		cases[fmt.Sprintf("HEAD %d", status)] = odd{head: status}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := ocitest.NewRegistry(t)
			f.Config.ErrorLog = ocitest.Quiet
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if c.digest != "" {
					w.Header().Set("Docker-Content-Digest", c.digest)
				}
				data, _ := io.ReadAll(r.Body)
				switch {
				case r.Method == http.MethodHead && c.head < 0:
					abort(w, r)
				case r.Method == http.MethodHead && c.head > 0:
					w.WriteHeader(c.head)
				case r.Method == http.MethodPost:
					location := r.URL.Path + "id"
					if c.location != nil {
						location = c.location(r)
					}
					w.Header().Set("Location", location)
					w.WriteHeader(max(c.post, 200))
				case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/"):
					f.Mu.Lock()
					f.Blobs[oci.MustParseDigest(r.URL.Query().Get("digest"))] = data
					f.Mu.Unlock()
					if c.location != nil && strings.Contains(name, "query") && r.URL.Query().Get("_state") != "a/b=" {
						t.Errorf("the upload has the query %s", r.URL.RawQuery)
					}
					w.WriteHeader(max(c.blob, 200))
				case r.Method == http.MethodPut:
					_, tag, _ := strings.Cut(r.URL.Path, "/manifests/")
					f.ServeManifest(tag, oci.MediaType(r.Header.Get("Content-Type")), data)
					w.WriteHeader(max(c.manifest, 200))
				default:
					return false
				}
				return true
			}
			img := ocitest.Hello(t)
			if _, err := testRemote(t, nil).Push(t.Context(), f.Ref("v1"), img); err != nil {
				t.Fatal(err)
			}
			if len(f.Blobs) != len(ocitest.Layers(t, img))+1 || len(f.Manifests) != 1 {
				t.Errorf("the registry has %d blobs and %d manifests", len(f.Blobs), len(f.Manifests))
			}
		})
	}
}
