package oci

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// faultyTarget is a foreign registry behind a fault.
func faultyTarget(t *testing.T, fault func(w http.ResponseWriter, r *http.Request) bool) *fakeRegistry {
	t.Helper()
	f := newFakeRegistry(t)
	target := registry.New(registry.Logger(quiet))
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
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
	img := buildHello(t)
	r := testRemote(t, nil)
	ref := f.ref("v1")
	if _, err := r.Push(t.Context(), ref, img); err != nil {
		t.Fatal(err)
	}
	if got, _, err := fetchYAML(t.Context(), r, newStore(t), ref); err != nil || string(got) != helloYAML {
		t.Errorf("%q %v", got, err)
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
		want  interface{ Is(error) bool }
		words string
	}{
		"Refused": {func(w http.ResponseWriter, r *http.Request) bool {
			return manifests(w, r, http.StatusBadRequest, `{"errors":[{"code":"MANIFEST_INVALID","message":"too \u001b[31mred"}]}`)
		}, ErrRefused, "MANIFEST_INVALID: too [31mred"},
		"Denied": {func(w http.ResponseWriter, r *http.Request) bool {
			return manifests(w, r, http.StatusForbidden, `{}`)
		}, ErrUnauthorized, ""},
		"StoresSomethingElse": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				w.Header().Set("Docker-Content-Digest", digestOfNothing)
			}
			return manifests(w, r, http.StatusCreated, "")
		}, ErrDigestMismatch, ""},
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
		}, ErrRefused, "redirects"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := faultyTarget(t, tc.fault)
			_, err := testRemote(t, nil).Push(t.Context(), f.ref("v1"), buildHello(t))
			wantCode(t, err, tc.want)
			if !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%q does not say %q", err, tc.words)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var last [2]Transfer
	r := testRemote(t, func(o *RemoteOptions) {
		o.Progress = func(p Transfer) {
			if p.Upload {
				last[0] = p
			} else {
				last[1] = p
			}
		}
	})
	ref := MustParseReference(memoryRegistry(t) + "/acme/pkg:v1")
	_, err := r.Push(t.Context(), ref, buildHello(t))
	must(t, err)
	must(t, read(t, r, ref))
	for _, p := range last {
		if p.Total == 0 || p.Done != p.Total || p.Digest.IsZero() {
			t.Errorf("%+v", p)
		}
	}
}

// A machine without a registry reads what was put into its store.
func TestStoreWithoutNetwork(t *testing.T) {
	store := newStore(t)
	index := twoPlatforms(t)
	must(t, store.Add(t.Context(), index, Limits{}))
	a, err := store.Artifact(t.Context(), index.Digest(), Limits{})
	must(t, err)
	m, err := FindManifest(t.Context(), a, Platform{OS: "linux", Architecture: "arm64"}, Limits{})
	must(t, err)
	got, err := PackageYAML(t.Context(), store, m, Limits{})
	if err != nil || !strings.HasSuffix(string(got), "# arm64\n") {
		t.Errorf("%q %v", got, err)
	}
	_, err = store.Artifact(t.Context(), DigestOf(nil), Limits{})
	wantCode(t, err, ErrBlobNotFound)
}

func TestArchiveThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	img := buildHello(t)
	_, err := Copy(t.Context(), ToArchive(filepath.Join(dir, "no", "x.xpkg"), ArchiveOptions{}, Limits{}), img)
	wantCode(t, err, ErrCannotWrite)

	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	_, err = Copy(t.Context(), ToArchive(filepath.Join(dir, "folder"), ArchiveOptions{}, Limits{}), img)
	wantCode(t, err, ErrCannotWrite)

	// What is not whole never appears.
	broken := &content{root: img.root}
	broken.add(img.root.Digest, bytesSource(img.raw))
	_, err = Copy(t.Context(), ToArchive(filepath.Join(dir, "x.xpkg"), ArchiveOptions{}, Limits{}), broken)
	wantCode(t, err, ErrBlobNotFound)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}
