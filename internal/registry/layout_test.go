package registry_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// again starts a server of the folder of another one, which has stopped. Its log is complete when it has stopped.
func (s *server) again(t *testing.T) (*server, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	next := start(t, func(o *registry.Options) {
		o.Dir, o.Log = s.dir, slog.New(slog.NewTextHandler(log, nil))
	})
	next.dir, next.admin = s.dir, s.admin
	return next, log
}

// get returns the status and the body of a read.
func (s *server) get(t *testing.T, target string) (int, string) {
	t.Helper()
	resp := s.do(t, http.MethodGet, target, s.admin, nil)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// files returns the number of files below a folder.
func files(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// writeList replaces the list of manifests in the folder of a repository, or removes it if there is no content.
func writeList(t *testing.T, dir string, content []byte) {
	t.Helper()
	list := filepath.Join(dir, "index.json")
	err := os.Remove(list)
	if content != nil {
		err = errors.Join(err, os.WriteFile(list, content, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedList refuses a repository whose list of manifests is damaged and has no copy, whether it is damaged before
// or after the start.
func TestDamagedList(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(content []byte) []byte{
		"missing":        func([]byte) []byte { return nil },
		"empty":          func([]byte) []byte { return []byte{} },
		"truncated":      func(b []byte) []byte { return b[:len(b)/2] },
		"zero bytes":     func(b []byte) []byte { return make([]byte, len(b)) },
		"null":           func([]byte) []byte { return []byte("null") },
		"empty object":   func([]byte) []byte { return []byte("{}") },
		"without list":   func([]byte) []byte { return []byte(`{"schemaVersion":2}`) },
		"invalid digest": func(b []byte) []byte { return bytes.Replace(b, []byte("sha256:"), []byte("sha256:x"), 1) },
	} {
		for _, when := range []string{"before the start", "after the start"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				testDamagedList(t, damage, when == "before the start")
			})
		}
	}
}

func testDamagedList(t *testing.T, damage func([]byte) []byte, isBefore bool) {
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	dir := filepath.Join(first.dir, "registry", "acme", "boats")
	path := filepath.Join(dir, "index.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// All content is older than the grace period, so that a lenient reader could remove it.
	old := time.Now().Add(-48 * time.Hour)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chtimes(path, old, old) })
	blobs := files(t, filepath.Join(dir, "blobs"))
	write := func() {
		t.Helper()
		writeList(t, dir, damage(content))
	}
	if isBefore {
		write()
	}
	s, log := first.again(t)
	if !isBefore {
		if status, body := s.get(t, "/v2/acme/boats/manifests/v1.0.0"); status != http.StatusOK {
			t.Fatal(status, body)
		}
		write()
	}
	for _, target := range []string{
		"/v2/acme/boats/tags/list", "/v2/acme/boats/manifests/v1.0.0",
		"/v2/acme/boats/referrers/" + oci.DigestOf(nil).String(),
	} {
		if status, body := s.get(t, target); status != http.StatusInternalServerError ||
			!strings.Contains(body, "REPOSITORY_DAMAGED") {
			t.Errorf("GET %s: %d %s", target, status, body)
		}
	}
	for _, kind := range []string{"Boat", "Ship"} {
		if err := s.push(t, s.admin, "acme/boats:v1.0.0", kind); err == nil {
			t.Errorf("the push of %s is accepted", kind)
		}
	}
	s.checkHealth(t, `"damagedRepositories":1`, "xpkg_registry_damaged_repositories 1")
	if status, body := s.get(t, "/v2/_catalog"); status != http.StatusOK || !strings.Contains(body, "acme/boats") {
		t.Errorf("the list of the repositories: %d %s", status, body)
	}
	s.stop()
	if n := files(t, filepath.Join(dir, "blobs")); n != blobs {
		t.Errorf("%d of %d blobs remain", n, blobs)
	}
	if !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "restore the file from a backup") {
		t.Errorf("the log names no remedy:\n%s", log)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	restored, _ := first.again(t)
	if status, body := restored.get(t, "/v2/acme/boats/manifests/v1.0.0"); status != http.StatusOK {
		t.Errorf("after the file was restored: %d %s", status, body)
	}
	restored.checkHealth(t, `"status":"ok"`, "xpkg_registry_damaged_repositories 0")
}

// checkHealth checks the texts in the health and in the metrics of a server.
func (s *server) checkHealth(t *testing.T, health, metrics string) {
	t.Helper()
	s.waitUntil(t, "the index is ready", func() bool { status, _ := s.get(t, "/healthz"); return status == http.StatusOK })
	if _, body := s.get(t, "/healthz"); !strings.Contains(body, health) {
		t.Errorf("the health lacks %s: %s", health, body)
	}
	if _, body := s.get(t, "/metrics"); !strings.Contains(body, metrics+"\n") {
		t.Errorf("the metrics lack %s:\n%s", metrics, body)
	}
}

// TestCollectionOfADamagedList damages the list of a repository immediately before its garbage is collected, without a
// request after it.
func TestCollectionOfADamagedList(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store, handler := registry.OpenStore(root, registry.GarbageCollection{Grace: time.Hour}, slog.New(slog.DiscardHandler))
	client := remote.New(remote.Options{Transport: direct{handler, ""}, Attempts: 1})
	t.Cleanup(client.Close)
	if _, err := client.Push(
		t.Context(), oci.MustParseReference(host+"/acme/boats:v1.0.0"), build(t, packageYAML("boats", "Boat")),
	); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "acme", "boats")
	writeList(t, dir, []byte("{}"))
	old := time.Now().Add(-48 * time.Hour)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chtimes(path, old, old) })
	blobs := files(t, filepath.Join(dir, "blobs"))
	store.Collect(t.Context())
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if n := files(t, filepath.Join(dir, "blobs")); n != blobs || blobs == 0 {
		t.Errorf("%d of %d blobs remain", n, blobs)
	}
}

// TestRestoredMarker restores the file that states the version of the layout.
func TestRestoredMarker(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	path := filepath.Join(first.dir, "registry", "acme", "boats", "oci-layout")
	for _, damaged := range []string{"", "{}", "null"} {
		if err := os.WriteFile(path, []byte(damaged), 0o644); err != nil {
			t.Fatal(err)
		}
		s, log := first.again(t)
		s.stop()
		if content, err := os.ReadFile(path); err != nil || !strings.Contains(string(content), "1.0.0") ||
			!strings.Contains(log.String(), path) {
			t.Errorf("%q: %q, %v\n%s", damaged, content, err, log)
		}
	}
}

// TestMissingManifest refuses other content for a version whose manifest is missing, and accepts the same.
func TestMissingManifest(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	content := build(t, packageYAML("boats", "Boat"))
	digest := content.Root().Digest
	if err := os.Remove(filepath.Join(s.dir, "registry", "acme", "boats", "blobs", "sha256", digest.Hex())); err != nil {
		t.Fatal(err)
	}
	if err := s.push(t, s.admin, "acme/boats:v1.0.0", "Ship"); err == nil {
		t.Error("a version whose manifest is missing gets other content")
	}
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	if status, body := s.get(t, "/v2/acme/boats/manifests/v1.0.0"); status != http.StatusOK ||
		oci.DigestOf([]byte(body)) != digest {
		t.Errorf("after a push of the same content: %d %s", status, body)
	}
}

// TestHealthAndMetricsCountNoPrivateDamage damages a private repository, and content of another one.
func TestHealthAndMetricsCountNoPrivateDamage(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/secret/boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/secret/rafts:v1.0.0", "Raft")
	private := filepath.Join(s.dir, "registry", "acme", "secret")
	manifest := build(t, packageYAML("rafts", "Raft")).Root().Digest
	if err := os.WriteFile(
		filepath.Join(private, "rafts", "blobs", "sha256", manifest.Hex()), []byte("{}"), 0o644,
	); err != nil {
		t.Fatal(err)
	}
	if status, body := s.get(t, "/v2/acme/secret/rafts/manifests/v1.0.0"); status != http.StatusNotFound {
		t.Fatalf("the damaged manifest: %d %s", status, body)
	}
	writeList(t, filepath.Join(private, "boats"), []byte{})
	if status, body := s.get(t, "/v2/acme/secret/boats/tags/list"); status != http.StatusInternalServerError {
		t.Fatalf("the damaged repository: %d %s", status, body)
	}
	s.checkHealth(t, `"damagedRepositories":1`, "xpkg_registry_damaged_repositories 1")
	s.checkHealth(t, `"damagedContents":1`, "xpkg_registry_damaged_contents 1")
	outsider := s.token(t, "carol", []string{"*"}, access.Read)
	for _, token := range []string{"", outsider} {
		if body, err := io.ReadAll(s.do(t, http.MethodGet, "/healthz", token, nil).Body); err != nil ||
			strings.TrimSpace(string(body)) != `{"status":"ok"}` {
			t.Errorf("the health for a client without rights: %s, %v", body, err)
		}
	}
	body, err := io.ReadAll(s.do(t, http.MethodGet, "/metrics", outsider, nil).Body)
	if err != nil || !strings.Contains(string(body), "xpkg_registry_damaged_repositories 0\n") ||
		!strings.Contains(string(body), "xpkg_registry_damaged_contents 0\n") {
		t.Errorf("the metrics for a client without rights: %s, %v", body, err)
	}
}

// TestARefusedReadDoesNotTouchTheRepository damages the list of a private repository, which the log would report if a
// read that the server refuses accessed the repository. The time of a response must not depend on content that the
// client may not read.
func TestARefusedReadDoesNotTouchTheRepository(t *testing.T) {
	var log bytes.Buffer
	s := start(t, func(o *registry.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	s.mustPush(t, "acme/secret/provider-boats:v1.0.0", "Boat")
	s.waitUntil(t, "the package is indexed", func() bool { return len(s.found(t, s.admin, "Boat")) > 0 })
	list := filepath.Join(s.dir, "registry", "acme", "secret", "provider-boats", "index.json")
	if err := os.WriteFile(list, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	carol := s.token(t, "carol", []string{"*"}, access.Read)
	for _, token := range []string{"", carol} {
		for _, target := range []string{"/tags/list", "/manifests/v1.0.0", "/referrers/sha256:" + strings.Repeat("a", 64)} {
			s.do(t, http.MethodGet, "/v2/acme/secret/provider-boats"+target, token, nil)
		}
	}
	s.stop() // The log is complete.
	if strings.Contains(log.String(), list) {
		t.Errorf("a refused read has found the damage:\n%s", &log)
	}
}

// TestANameBelowAFileIsThatOfAnAbsentRepository reads repositories whose names contain those of files of another one,
// and of folders without a list.
func TestANameBelowAFileIsThatOfAnAbsentRepository(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	digest, err := oci.ParseDigest(s.do(
		t, http.MethodHead, "/v2/acme/boats/manifests/v1.0.0", s.admin, nil,
	).Header.Get("Docker-Content-Digest"))
	if err != nil {
		t.Fatal(err)
	}
	var absent string
	for _, name := range []string{
		"acme/rafts", "acme/boats/index.json", "acme/boats/index.json/a", "acme/boats/oci-layout",
		"acme/boats/oci-layout/a/b", "acme/boats/blobs", "acme/boats/blobs/sha256",
		"acme/boats/blobs/sha256/" + oci.DigestOf(nil).Hex(), "acme/boats/blobs/sha256/" + digest.Hex() + "/a",
	} {
		for _, target := range []string{"/tags/list", "/manifests/v1.0.0", "/blobs/" + oci.DigestOf(nil).String()} {
			status, body := s.get(t, "/v2/"+name+target)
			if status != http.StatusNotFound || strings.Contains(body, "DAMAGED") {
				t.Errorf("%s%s: status %d, %s", name, target, status, body)
			}
			if target == "/tags/list" && absent == "" {
				absent = body
			}
			if target == "/tags/list" && body != absent {
				t.Errorf("%s: %s; want %s as for another repository that does not exist", name, body, absent)
			}
		}
	}
	if _, body := s.get(t, "/healthz"); strings.Contains(body, "damaged") {
		t.Error(body)
	}
}
