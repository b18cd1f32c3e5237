package registry_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// disk records the files below a folder that a server writes to the disk.
type disk struct {
	dir string

	mu      sync.Mutex
	written []string
	// fails is the end of the name of a file that cannot be written.
	fails string
}

// failNext sets the file that cannot be written.
func (d *disk) failNext(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = name
}

// taken returns the files that were written since the last call, sorted.
func (d *disk) taken() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.written
	d.written = nil
	slices.Sort(out)
	return out
}

// sync writes a file.
func (d *disk) sync(path string, sync func(string) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != "" && strings.HasSuffix(path, d.fails) {
		d.fails = ""
		return errors.New("the disk fails")
	}
	name, err := filepath.Rel(d.dir, path)
	if err != nil {
		return err
	}
	if name != "." && !strings.HasPrefix(name, "index") { // The server publishes its index in the same folder.
		d.written = append(d.written, name)
	}
	return sync(path)
}

// startOnDisk starts a server whose writes to the disk are recorded.
func startOnDisk(t *testing.T) (*server, *disk) {
	t.Helper()
	d := &disk{}
	s := startPrepared(t, func(o *registry.Options) { d.dir = filepath.Join(o.Dir, "registry") }, func(r *registry.Server) { r.SetSync(d.sync) })
	return s, d
}

// uploadText pushes a blob and returns the status and the digest.
func (s *server) uploadText(t *testing.T, repository, content string) (int, oci.Digest) {
	t.Helper()
	d := oci.DigestOf([]byte(content))
	begun := s.do(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/", s.admin, nil).Header.Get("Location")
	return s.do(t, http.MethodPut, begun+"&digest="+d.String(), s.admin, strings.NewReader(content)).StatusCode, d
}

// put pushes a manifest.
func (s *server) put(t *testing.T, repository, reference, content string) int {
	t.Helper()
	return s.do(t, http.MethodPut, "/v2/"+repository+"/manifests/"+reference, s.admin, strings.NewReader(content)).StatusCode
}

// subjectManifest returns a manifest with a configuration, a layer and perhaps a subject.
func subjectManifest(config, layer oci.Digest, subject string) string {
	if subject != "" {
		subject = fmt.Sprintf(`,"subject":{"mediaType":%q,"digest":%q,"size":%d}`, oci.MediaTypeOCIManifest, oci.DigestOf([]byte(subject)), len(subject))
	}
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/example","digest":%q,"size":1},`+
		`"layers":[{"mediaType":"application/example","digest":%q,"size":1}]%s}`, oci.MediaTypeOCIManifest, config, layer, subject)
}

// TestAcknowledgedChangesAreOnTheDisk checks the files that each change writes to the disk before its response.
func TestAcknowledgedChangesAreOnTheDisk(t *testing.T) {
	t.Parallel()
	s, d := startOnDisk(t)
	const repository = "acme/boats"
	const list, folder = repository + "/index.json", repository + "/blobs/sha256"
	file := func(digest oci.Digest) string { return folder + "/" + digest.Hex() }
	check := func(change string, status, want int, files ...string) {
		t.Helper()
		slices.Sort(files)
		if written := d.taken(); status != want || !slices.Equal(written, files) {
			t.Errorf("%s: status %d\n%q, want\n%q", change, status, written, files)
		}
	}
	status, config := s.uploadText(t, repository, "c")
	check("the first blob", status, http.StatusCreated, file(config), folder, list, repository+"/blobs", repository, "acme")
	status, layer := s.uploadText(t, repository, "l")
	check("a blob", status, http.StatusCreated, file(layer), folder)
	image := subjectManifest(config, layer, "")
	manifest := oci.DigestOf([]byte(image))
	status = s.put(t, repository, "edge", image)
	check("a manifest", status, http.StatusCreated, file(manifest), file(config), file(layer), folder, list, repository)
	target := "/v2/acme/rafts/blobs/uploads/?from=" + repository + "&mount=" + layer.String()
	status = s.do(t, http.MethodPost, target, s.admin, nil).StatusCode
	check("a mount", status, http.StatusCreated,
		strings.Replace(file(layer), "boats", "rafts", 1), "acme/rafts/blobs/sha256", "acme/rafts/index.json", "acme/rafts/blobs", "acme/rafts", "acme")

	lists := func() (found []string) {
		t.Helper()
		document, err := os.ReadFile(filepath.Join(d.dir, list))
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(document), `"digest":"sha256:`) {
			if strings.Contains(part, "org.olareg.referrer.subject") {
				found = append(found, folder+"/"+part[:64])
			}
		}
		return found
	}
	artifact := subjectManifest(config, layer, image)
	referrer := oci.DigestOf([]byte(artifact))
	status = s.put(t, repository, referrer.String(), artifact)
	check("a referrer", status, http.StatusCreated, append(lists(), file(referrer), file(config), file(layer), folder, list, repository)...)
	status = s.do(t, http.MethodDelete, "/v2/"+repository+"/manifests/"+referrer.String(), s.admin, nil).StatusCode
	check("a deletion", status, http.StatusAccepted, append(lists(), folder, list, repository)...)
}

// TestChangesThatDoNotReachTheDiskFail pushes a blob and a manifest to a disk that fails, and again.
func TestChangesThatDoNotReachTheDiskFail(t *testing.T) {
	t.Parallel()
	s, d := startOnDisk(t)
	const repository = "acme/boats"
	content := oci.DigestOf([]byte("b"))
	d.failNext(content.Hex())
	if status, _ := s.uploadText(t, repository, "b"); status != http.StatusServiceUnavailable {
		t.Errorf("a blob: %d", status)
	}
	path := filepath.Join(d.dir, repository, "blobs", "sha256", content.Hex())
	former, err := os.Open(path) // No other file gets its number while it is open.
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close()
	resp := s.do(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?from="+repository+"&mount="+content.String(), s.admin, nil)
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("the blob again: %d", resp.StatusCode)
	}
	before, err := former.Stat()
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, after) {
		t.Error("the file that could not be written to the disk was not replaced")
	}
	image := subjectManifest(content, content, "")
	d.failNext(filepath.Join("boats", "index.json"))
	resp = s.do(t, http.MethodPut, "/v2/"+repository+"/manifests/edge", s.admin, strings.NewReader(image))
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Docker-Content-Digest") != "" {
		t.Errorf("a manifest: %d %v", resp.StatusCode, resp.Header)
	}
	if status := s.put(t, repository, "edge", image); status != http.StatusCreated {
		t.Errorf("the manifest again: %d", status)
	}
}

// TestACollectionWritesTheListToTheDisk collects the garbage of a repository with a missing referrer, for which olareg writes the list of manifests again.
func TestACollectionWritesTheListToTheDisk(t *testing.T) {
	t.Parallel()
	const repository = "acme/boats"
	first := start(t, nil)
	_, config := first.uploadText(t, repository, "c")
	artifact := subjectManifest(config, config, "absent")
	referrer := oci.DigestOf([]byte(artifact))
	if status := first.put(t, repository, referrer.String(), artifact); status != http.StatusCreated {
		t.Fatal(status)
	}
	first.stop()
	d := &disk{dir: filepath.Join(first.dir, "registry")}
	if err := os.Remove(filepath.Join(d.dir, repository, "blobs", "sha256", referrer.Hex())); err != nil {
		t.Fatal(err)
	}
	second := startPrepared(t, func(o *registry.Options) { o.Dir = first.dir }, func(r *registry.Server) { r.SetSync(d.sync) })
	second.admin = first.admin
	second.get(t, "/v2/"+repository+"/tags/list")
	d.taken()
	second.stop()
	if written, want := d.taken(), []string{repository, repository + "/index.json"}; !slices.Equal(written, want) {
		t.Errorf("%q was written to the disk, want %q", written, want)
	}
}
