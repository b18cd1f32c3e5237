package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// age makes all files of a folder older than the grace period of the garbage collection.
func age(t *testing.T, dir string) {
	t.Helper()
	old := time.Now().Add(-48 * time.Hour)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestACollectionKeepsTheContentOfADamagedManifest collects the garbage of a repository with a missing or damaged
// manifest, and then restores the file.
func TestACollectionKeepsTheContentOfADamagedManifest(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := start(t, nil)
			first.mustPush(t, "acme/boats:v1.0.0", "Boat")
			first.mustPush(t, "acme/boats:v1.1.0", "Ship")
			const target = "/v2/acme/boats/manifests/v1.0.0"
			_, manifest := first.get(t, target)
			first.stop()
			dir := filepath.Join(first.dir, "registry", "acme", "boats")
			age(t, dir)
			path := filepath.Join(dir, "blobs", "sha256", oci.DigestOf([]byte(manifest)).Hex())
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			blobs := files(t, filepath.Join(dir, "blobs"))
			second, log := first.again(t)
			if status, body := second.get(t, target); status != http.StatusNotFound {
				t.Errorf("%d %s", status, body)
			}
			second.CollectGarbage(t.Context())
			second.stop()
			if n := files(t, filepath.Join(dir, "blobs")); n != blobs {
				t.Errorf("%d of %d blobs remain", n, blobs)
			}
			if !strings.Contains(log.String(), path) {
				t.Errorf("the log does not name the file:\n%s", log)
			}
			third, _ := first.again(t)
			if status, body := third.get(t, "/v2/acme/boats/tags/list"); !strings.Contains(body, `"v1.0.0"`) {
				t.Errorf("the tags: %d %s", status, body)
			}
			if err := third.push(t, third.admin, "acme/boats:v1.0.0", "Raft"); err == nil {
				t.Error("the version gets other content")
			}
			if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			if status, body := third.get(t, target); status != http.StatusOK {
				t.Errorf("after the file was restored: %d %s", status, body)
			}
			var m struct{ Layers []oci.Descriptor }
			if err := json.Unmarshal([]byte(manifest), &m); err != nil {
				t.Fatal(err)
			}
			for _, layer := range m.Layers {
				if status, _ := third.get(t, "/v2/acme/boats/blobs/"+layer.Digest.String()); status != http.StatusOK {
					t.Errorf("the layer %s: %d", layer.Digest, status)
				}
			}
		})
	}
}

// TestReferrersOfContentThatIsPushedAgain deletes a version with an artifact, collects the garbage, and pushes the same
// content again.
func TestReferrersOfContentThatIsPushedAgain(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	const target = "/v2/acme/boats/manifests/v1.0.0"
	_, manifest := first.get(t, target)
	subject := oci.DigestOf([]byte(manifest))
	empty := []byte("{}")
	begun := first.do(t, http.MethodPost, "/v2/acme/boats/blobs/uploads/", first.admin, nil).Header.Get("Location")
	if resp := first.do(t, http.MethodPut, begun+"&digest="+
		oci.DigestOf(empty).String(), first.admin, strings.NewReader("{}")); resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.StatusCode)
	}
	referrer := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"artifactType":"application/example","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":%q,"size":2},`+
		`"layers":[],"subject":{"mediaType":%[1]q,"digest":%[3]q,"size":%d}}`, oci.MediaTypeOCIManifest, oci.DigestOf(empty),
		subject, len(manifest))
	digest := oci.DigestOf([]byte(referrer)).String()
	if resp := first.do(t, http.MethodPut, "/v2/acme/boats/manifests/"+
		digest, first.admin, strings.NewReader(referrer)); resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.StatusCode)
	}
	if resp := first.do(t, http.MethodDelete, "/v2/acme/boats/manifests/"+
		subject.String(), first.admin, nil); resp.StatusCode != http.StatusAccepted {
		t.Fatal(resp.StatusCode)
	}
	first.stop()
	age(t, filepath.Join(first.dir, "registry", "acme", "boats"))
	second, _ := first.again(t)
	second.get(t, "/v2/acme/boats/tags/list")
	second.CollectGarbage(t.Context())
	second.stop()
	third, _ := first.again(t)
	third.mustPush(t, "acme/boats:v1.0.0", "Boat")
	if status, body := third.get(t, "/v2/acme/boats/referrers/"+subject.String()); !strings.Contains(body, digest) {
		t.Errorf("the referrers: %d %s", status, body)
	}
}

// TestUploadsOfAKilledServerAreRemoved starts a server with a file that another one has left.
func TestUploadsOfAKilledServerAreRemoved(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	dir := filepath.Join(first.dir, "registry", "acme", "boats", "_uploads")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "upload.1"), []byte("part"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, _ := first.again(t)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upload remains: %v", err)
	}
	if status, body := second.get(t, "/v2/acme/boats/manifests/v1.0.0"); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

// TestACollectionKeepsTheContentOfADamagedReferrer collects the garbage of a repository with a missing or damaged
// manifest of an artifact. The content is in its folder, or in one to which a symbolic link leads.
func TestACollectionKeepsTheContentOfADamagedReferrer(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path, blobs string) error{
		"missing": func(_ *testing.T, path, _ string) error { return os.Remove(path) },
		"damaged": func(_ *testing.T, path, _ string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"linked": func(t *testing.T, path, blobs string) error {
			t.Helper()
			moved := filepath.Join(t.TempDir(), "blobs")
			return errors.Join(os.Remove(path), os.Rename(blobs, moved), os.Symlink(moved, blobs))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := start(t, nil)
			const repository = "acme/boats"
			put := func(reference, manifest string) {
				t.Helper()
				if status := first.put(t, repository, reference, manifest); status != http.StatusCreated {
					t.Fatal(status)
				}
			}
			_, config := first.uploadText(t, repository, "config")
			_, layer := first.uploadText(t, repository, "layer")
			image := subjectManifest(config, config, "")
			artifact := subjectManifest(config, layer, image)
			put("v1.0.0", image)
			put(oci.DigestOf([]byte(artifact)).String(), artifact)
			first.stop()
			dir := filepath.Join(first.dir, "registry", "acme", "boats")
			age(t, dir)
			if err := damage(
				t, filepath.Join(dir, "blobs", "sha256", oci.DigestOf([]byte(artifact)).Hex()), filepath.Join(dir, "blobs"),
			); err != nil {
				t.Fatal(err)
			}
			second, _ := first.again(t)
			second.get(t, "/v2/"+repository+"/tags/list")
			second.CollectGarbage(t.Context())
			second.stop()
			if _, err := os.Stat(filepath.Join(dir, "blobs", "sha256", layer.Hex())); err != nil {
				t.Errorf("the layer: %v", err)
			}
		})
	}
}

// TestARepositoryWithALinkedFolderIsServed replaces the folder of an algorithm by a symbolic link. A collection keeps
// its content.
func TestARepositoryWithALinkedFolderIsServed(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	folder := filepath.Join(first.dir, "registry", "acme", "boats", "blobs", "sha256")
	moved := filepath.Join(t.TempDir(), "sha256")
	if err := errors.Join(os.Rename(folder, moved), os.Symlink(moved, folder)); err != nil {
		t.Fatal(err)
	}
	age(t, moved)
	blobs := files(t, moved)
	second, _ := first.again(t)
	second.CollectGarbage(t.Context())
	if status, body := second.get(t, "/v2/acme/boats/manifests/v1.0.0"); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	second.mustPush(t, "acme/boats:v1.1.0", "Ship")
	if n := files(t, moved); n <= blobs {
		t.Errorf("%d blobs after a push, %d before", n, blobs)
	}
}
