package registry_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// replaceFile replaces a file, which can have another name, by a new one.
func replaceFile(path string, content []byte) error {
	added := path + ".new"
	return errors.Join(os.WriteFile(added, content, 0o600), os.Rename(added, path))
}

// keepCopy gives the list in the folder of a repository the second name that former releases gave it.
func keepCopy(t *testing.T, dir string) {
	t.Helper()
	if err := os.Link(filepath.Join(dir, "index.json"), filepath.Join(dir, "_index.json")); err != nil {
		t.Fatal(err)
	}
}

// TestALostListIsRestored damages the list of a repository of a former release as a loss of power did, before and after
// the start. Its copy has every version.
func TestALostListIsRestored(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"missing":    os.Remove,
		"empty":      func(path string) error { return replaceFile(path, nil) },
		"truncated":  func(path string) error { return replaceFile(path, []byte(`{"schemaVersion":2,"manifests":[`)) },
		"zero bytes": func(path string) error { return replaceFile(path, make([]byte, 400)) },
	} {
		for _, isBefore := range []bool{true, false} {
			first := start(t, nil)
			first.mustPush(t, "acme/boats:v1.0.0", "Boat")
			first.mustPush(t, "acme/boats:v1.1.0", "Ship")
			first.stop()
			dir := filepath.Join(first.dir, "registry", "acme", "boats")
			keepCopy(t, dir)
			age(t, dir)
			list := filepath.Join(dir, "index.json")
			content, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			blobs := files(t, filepath.Join(dir, "blobs"))
			if isBefore {
				if err := damage(list); err != nil {
					t.Fatal(err)
				}
			}
			second, log := first.again(t)
			if !isBefore {
				second.get(t, "/v2/acme/boats/tags/list")
				if err := damage(list); err != nil {
					t.Fatal(err)
				}
			}
			for _, tag := range []string{"v1.0.0", "v1.1.0"} {
				if status, body := second.get(t, "/v2/acme/boats/manifests/"+tag); status != http.StatusOK {
					t.Errorf("%s, before the start %t: %s: %d %s", name, isBefore, tag, status, body)
				}
			}
			if restored, err := os.ReadFile(list); err != nil || !bytes.Equal(restored, content) {
				t.Errorf("%s, before the start %t: %v\n%s, want\n%s", name, isBefore, err, restored, content)
			}
			second.mustPush(t, "acme/boats:v1.2.0", "Raft")
			second.stop()
			if !strings.Contains(log.String(), "restored from its copy") || !strings.Contains(log.String(), list) {
				t.Errorf("%s, before the start %t: the log does not report it:\n%s", name, isBefore, log)
			}
			if n := files(t, filepath.Join(dir, "blobs")); n <= blobs {
				t.Errorf("%s, before the start %t: %d files with content, %d before the last push", name, isBefore, n, blobs)
			}
		}
	}
}

// TestADamagedListWithoutAValidCopyIsRefused damages the copy, too.
func TestADamagedListWithoutAValidCopyIsRefused(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	dir := filepath.Join(first.dir, "registry", "acme", "boats")
	for _, damaged := range []string{"", "{}", `{"schemaVersion":2,"manifests":[{"digest":"sha256:1"}]}`} {
		writeList(t, dir, []byte{})
		if err := os.WriteFile(filepath.Join(dir, "_index.json"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := first.again(t)
		if status, body := s.get(t, "/v2/acme/boats/tags/list"); status != http.StatusInternalServerError ||
			!strings.Contains(body, "REPOSITORY_DAMAGED") {
			t.Errorf("%q: %d %s", damaged, status, body)
		}
		s.stop()
	}
}

// TestAChangeRemovesTheCopy pushes to a repository with the copy of a former list: if the list was lost later, the copy
// would bring it back.
func TestAChangeRemovesTheCopy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	dir := filepath.Join(s.dir, "registry", "acme", "boats")
	keepCopy(t, dir)
	s.mustPush(t, "acme/boats:v1.1.0", "Ship")
	if _, err := os.Stat(filepath.Join(dir, "_index.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy remains: %v", err)
	}
	for _, tag := range []string{"v1.0.0", "v1.1.0"} {
		if status, body := s.get(t, "/v2/acme/boats/manifests/"+tag); status != http.StatusOK {
			t.Errorf("%s: %d %s", tag, status, body)
		}
	}
}

// TestDeletedVersionsDoNotComeBack deletes all versions, and collects the garbage.
func TestDeletedVersionsDoNotComeBack(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	var digests []oci.Digest
	for tag, kind := range map[string]string{"v1.0.0": "Boat", "v1.1.0": "Ship"} {
		first.mustPush(t, "acme/boats:"+tag, kind)
		digests = append(digests, build(t, packageYAML("boats", kind)).Root().Digest)
	}
	for _, d := range digests {
		if resp := first.do(t, http.MethodDelete, "/v2/acme/boats/manifests/"+
			d.String(), first.admin, nil); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode)
		}
	}
	first.stop()
	dir := filepath.Join(first.dir, "registry", "acme", "boats")
	check := func(when string) {
		t.Helper()
		s, _ := first.again(t)
		defer s.stop()
		s.CollectGarbage(t.Context())
		if status, body := s.get(t, "/v2/acme/boats/tags/list"); status != http.StatusOK || strings.Contains(body, `"v1.`) {
			t.Errorf("%s: %d %s", when, status, body)
		}
		for _, d := range digests {
			if status, body := s.get(t, "/v2/acme/boats/manifests/"+d.String()); status != http.StatusNotFound {
				t.Errorf("%s: %d %s", when, status, body)
			}
		}
	}
	check("after a restart")
	age(t, dir)
	check("after a garbage collection")
}

// TestUnfinishedListsAreRemoved starts a server with files that a killed one has left.
func TestUnfinishedListsAreRemoved(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	first.mustPush(t, "acme/boats:v1.0.0", "Boat")
	first.stop()
	dir := filepath.Join(first.dir, "registry", "acme", "boats")
	names := func() (out []string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			out = append(out, entry.Name())
		}
		return out
	}
	before := names()
	kept := []string{"index.json.damaged", "index.json.1a"}
	for _, name := range append([]string{"index.json.123", "._index.json456", ".index.json789"}, kept...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), fs.FileMode(0o600)); err != nil {
			t.Fatal(err)
		}
	}
	second, _ := first.again(t)
	second.stop()
	want := append(before, kept...)
	slices.Sort(want)
	if found := names(); !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}
