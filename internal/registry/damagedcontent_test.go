package registry_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestDamagedContent serves no damaged content, and replaces it by a push, but keeps its version.
func TestDamagedContent(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"a bit":     func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":     func([]byte) []byte { return nil },
		"longer":    func(b []byte) []byte { return append(b, b...) },
	} {
		for _, part := range []string{"manifest", "config", "layer"} {
			for _, when := range []string{"before the start", "after a read"} {
				t.Run(strings.Join([]string{name, part, when}, " "), func(t *testing.T) {
					t.Parallel()
					testDamagedContent(t, part, damage, when == "before the start")
				})
			}
		}
	}
}

func testDamagedContent(t *testing.T, part string, damage func([]byte) []byte, isBefore bool) {
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	content := build(t, packageYAML("boats", "Boat"))
	m, err := oci.FindManifest(t.Context(), content, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d := map[string]oci.Digest{
		"manifest": content.Root().Digest, "config": m.Config.Digest, "layer": m.Layers[0].Digest,
	}[part]
	targets := []string{"/v2/acme/boats/blobs/" + d.String()}
	if part == "manifest" {
		targets = []string{"/v2/acme/boats/manifests/v1.0.0", "/v2/acme/boats/manifests/" + d.String()}
	}
	path := filepath.Join(first.dir, "registry", "acme", "boats", "blobs", "sha256", d.Hex())
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		if err := os.WriteFile(path, damage(bytes.Clone(original)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if isBefore {
		write()
	}
	s, log := first.again(t)
	if !isBefore {
		if status, body := s.get(t, targets[0]); status != http.StatusOK {
			t.Fatal(status, body)
		}
		write()
	}
	for _, target := range targets {
		if status, body := s.get(t, target); status != http.StatusNotFound {
			t.Errorf("GET %s: %d %q", target, status, body)
		}
		if resp := s.do(t, http.MethodHead, target, s.admin, nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("HEAD %s: %d", target, resp.StatusCode)
		}
	}
	if err := s.push(t, s.admin, "acme/boats:v1.0.0", "Ship"); err == nil {
		t.Error("a version with damaged content gets other content")
	}
	s.checkHealth(t, `"damagedContents":1`, "xpkg_registry_damaged_contents 1")
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	s.checkHealth(t, `"status":"ok"`, "xpkg_registry_damaged_contents 0")
	for _, target := range targets {
		if status, body := s.get(t, target); status != http.StatusOK || body != string(original) {
			t.Errorf("GET %s after a push of the same content: %d %q", target, status, body)
		}
	}
	s.stop()
	if !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "content is damaged") {
		t.Errorf("the log does not name the file:\n%s", log)
	}
}

// TestDeletionOfADamagedVersion leaves the status of a version whose manifest is damaged, so that it cannot get other
// content.
func TestDeletionOfADamagedVersion(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) },
		"missing": os.Remove,
	} {
		s := start(t, nil)
		s.mustPush(t, "acme/boats:v1.0.0", "Boat")
		d := build(t, packageYAML("boats", "Boat")).Root().Digest
		if err := damage(filepath.Join(s.dir, "registry", "acme", "boats", "blobs", "sha256", d.Hex())); err != nil {
			t.Fatal(err)
		}
		resp := s.do(t, http.MethodDelete, "/v2/acme/boats/manifests/"+d.String(), s.admin, nil)
		if err := s.push(t, s.admin, "acme/boats:v1.0.0", "Ship"); err == nil {
			t.Errorf("%s: after the deletion (status %d), the version gets other content", name, resp.StatusCode)
		}
	}
}

// collectingWriter is a client that reads nothing until the garbage of the repository was collected.
type collectingWriter struct {
	*httptest.ResponseRecorder
	collect func()
}

// Write implements [io.Writer].
func (w *collectingWriter) Write(p []byte) (int, error) {
	w.collect()
	return w.ResponseRecorder.Write(p)
}

// TestASlowReaderOfAManifestDoesNotDelayACollection reads a manifest, and a part of it.
func TestASlowReaderOfAManifestDoesNotDelayACollection(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store, handler := registry.OpenStore(root, registry.GarbageCollection{Grace: time.Hour}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = store.Close() })
	content := build(t, packageYAML("boats", "Boat"))
	client := remote.New(remote.Options{Transport: direct{handler, ""}, Attempts: 1})
	t.Cleanup(client.Close)
	if _, err := client.Push(t.Context(), oci.MustParseReference(host+"/acme/boats:v1.0.0"), content); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, part string
		status       int
		first, size  int64
	}{
		{http.MethodGet, "", http.StatusOK, 0, content.Root().Size},
		{http.MethodGet, "bytes=2-5", http.StatusPartialContent, 2, 4},
		{http.MethodHead, "", http.StatusOK, 0, 0},
	} {
		collected := sync.OnceFunc(func() { store.Collect(t.Context()) })
		w := &collectingWriter{httptest.NewRecorder(), collected}
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/v2/acme/boats/manifests/v1.0.0", nil)
		if c.part != "" {
			r.Header.Set("Range", c.part)
		}
		handler.ServeHTTP(w, r)
		collected()
		whole, err := os.ReadFile(filepath.Join(root, "acme", "boats", "blobs", "sha256", content.Root().Digest.Hex()))
		if err != nil {
			t.Fatal(err)
		}
		header := w.Header()
		if w.Code != c.status || w.Body.String() != string(whole[c.first:c.first+c.size]) ||
			header.Get("Docker-Content-Digest") != content.Root().Digest.String() ||
			header.Get("Content-Type") != string(oci.MediaTypeOCIManifest) ||
			c.size == 0 && header.Get("Content-Length") != strconv.FormatInt(content.Root().Size, 10) {
			t.Errorf("%s %s: %d %v %s", c.method, c.part, w.Code, header, w.Body)
		}
	}
}
