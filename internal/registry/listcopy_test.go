package registry_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// replaceFile replaces a file, which can have another name, by a new one.
func replaceFile(path string, content []byte) error {
	added := path + ".new"
	return errors.Join(os.WriteFile(added, content, 0o600), os.Rename(added, path))
}

// TestALostListIsRestored damages the list of a repository as a loss of power does, before and after the start. Its copy has every version.
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
		if status, body := s.get(t, "/v2/acme/boats/tags/list"); status != http.StatusInternalServerError || !strings.Contains(body, "REPOSITORY_DAMAGED") {
			t.Errorf("%q: %d %s", damaged, status, body)
		}
		s.stop()
	}
}

// TestAnOlderCopyIsReplaced puts the copy of a former list into the folder, as an interrupted server or a restored backup leaves it. The next change writes a copy of the
// list before it changes the list. If the list is lost before, the versions of the copy are served; a version that it lacks can be pushed again.
func TestAnOlderCopyIsReplaced(t *testing.T) {
	t.Parallel()
	for _, isLost := range []bool{false, true} {
		first := start(t, nil)
		first.mustPush(t, "acme/boats:v1.0.0", "Boat")
		first.stop()
		dir := filepath.Join(first.dir, "registry", "acme", "boats")
		former, err := os.ReadFile(filepath.Join(dir, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		second, _ := first.again(t)
		second.mustPush(t, "acme/boats:v1.1.0", "Ship")
		second.stop()
		writeList(t, dir, readFile(t, filepath.Join(dir, "index.json")))
		if err := os.WriteFile(filepath.Join(dir, "_index.json"), former, 0o600); err != nil {
			t.Fatal(err)
		}
		if isLost {
			if err := replaceFile(filepath.Join(dir, "index.json"), nil); err != nil {
				t.Fatal(err)
			}
		}
		third, _ := first.again(t)
		if status, body := third.get(t, "/v2/acme/boats/manifests/v1.0.0"); status != http.StatusOK {
			t.Errorf("v1.0.0: %d %s", status, body)
		}
		if status, body := third.get(t, "/v2/acme/boats/manifests/v1.1.0"); (status == http.StatusOK) == isLost {
			t.Errorf("v1.1.0, list lost %t: %d %s", isLost, status, body)
		}
		third.mustPush(t, "acme/boats:v1.1.0", "Ship")
		third.mustPush(t, "acme/boats:v1.2.0", "Raft")
		if list, copied := readFile(t, filepath.Join(dir, "index.json")), readFile(t, filepath.Join(dir, "_index.json")); !bytes.Equal(list, copied) {
			t.Errorf("the copy is\n%s, want\n%s", copied, list)
		}
		third.stop()
	}
}

// readFile returns the content of a file.
func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestDeletedVersionsDoNotComeBack deletes all versions, and loses the list afterwards.
func TestDeletedVersionsDoNotComeBack(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	var digests []oci.Digest
	for tag, kind := range map[string]string{"v1.0.0": "Boat", "v1.1.0": "Ship"} {
		first.mustPush(t, "acme/boats:"+tag, kind)
		digests = append(digests, build(t, packageYAML("boats", kind)).Root().Digest)
	}
	for _, d := range digests {
		if resp := first.do(t, http.MethodDelete, "/v2/acme/boats/manifests/"+d.String(), first.admin, nil); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode)
		}
	}
	first.stop()
	dir := filepath.Join(first.dir, "registry", "acme", "boats")
	check := func(when string) {
		t.Helper()
		s, _ := first.again(t)
		defer s.stop()
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
	if err := replaceFile(filepath.Join(dir, "index.json"), nil); err != nil {
		t.Fatal(err)
	}
	check("after the list was lost")
}

// TestAListLostWithAChangeIsRestored loses the list of a repository immediately after olareg has replaced it, as the loss of power does on a file system that writes the new
// name before the content. Everything that was acknowledged is there afterwards.
func TestAListLostWithAChangeIsRestored(t *testing.T) {
	t.Parallel()
	root, yes := t.TempDir(), true
	list := filepath.Join(root, "acme", "boats", "index.json")
	lost := errors.New("the power is lost")
	// change starts a registry, makes a change, and returns its status; 0 if the power is lost.
	change := func(loses bool, method, target, body string) (status int) {
		t.Helper()
		layouts := registry.NewLayouts(root, slog.New(slog.DiscardHandler))
		images := olareg.New(config.Config{
			Storage: config.ConfigStorage{StoreType: config.StoreDir, RootDir: root, GC: registry.GarbageCollection{Grace: time.Hour}.Config()},
			API:     config.ConfigAPI{DeleteEnabled: &yes}, Log: layouts.Log(),
		})
		if !loses {
			defer images.Close()
		}
		handler := layouts.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorder := httptest.NewRecorder()
			registry.Conforming(images).ServeHTTP(recorder, r)
			if loses {
				if err := replaceFile(list, nil); err != nil {
					t.Error(err)
				}
				panic(lost)
			}
			for name, values := range recorder.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
		}))
		w := httptest.NewRecorder()
		defer func() {
			if found := recover(); found != nil && found != lost { //nolint:errorlint // It is the value itself.
				panic(found)
			}
		}()
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", string(oci.MediaTypeOCIManifest))
		handler.ServeHTTP(w, r)
		return w.Code
	}
	config := oci.DigestOf([]byte("c"))
	begin := "/v2/acme/boats/blobs/uploads/?digest=" + config.String()
	if status := change(false, http.MethodPost, begin, "c"); status != http.StatusCreated {
		t.Fatal("the blob", status)
	}
	var want []string
	for i, tag := range []string{"a", "b", "c", "d"} {
		target, body := "/v2/acme/boats/manifests/"+tag, subjectManifest(config, config, tag)
		if i > 0 {
			if status := change(true, http.MethodPut, target, body); status != 0 {
				t.Fatal(status)
			}
			if status := change(false, http.MethodGet, target, ""); status != http.StatusNotFound {
				t.Errorf("%s was not acknowledged: %d", tag, status)
			}
		}
		if status := change(false, http.MethodPut, target, body); status != http.StatusCreated {
			t.Fatal(tag, status)
		}
		want = append(want, target)
		for _, target := range want {
			if status := change(false, http.MethodGet, target, ""); status != http.StatusOK {
				t.Errorf("after %s: %s: %d", tag, target, status)
			}
		}
	}
	if status := change(true, http.MethodDelete, want[0], ""); status != 0 {
		t.Fatal(status)
	}
	for _, target := range want {
		if status := change(false, http.MethodGet, target, ""); status != http.StatusOK {
			t.Errorf("after a deletion that was not acknowledged: %s: %d", target, status)
		}
	}
}

// TestTheLastListIsASecondName checks that a change does not write the list twice, and that a list without a second name, as in a file system that has none, is copied before it
// changes.
func TestTheLastListIsASecondName(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.mustPush(t, "acme/boats:v1.0.0", "Boat")
	dir := filepath.Join(s.dir, "registry", "acme", "boats")
	list, last := filepath.Join(dir, "index.json"), filepath.Join(dir, "_index.json")
	isSame := func() bool {
		t.Helper()
		a, err := os.Stat(list)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.Stat(last)
		if err != nil {
			t.Fatal(err)
		}
		return os.SameFile(a, b)
	}
	if !isSame() {
		t.Error("the list was copied")
	}
	if err := replaceFile(list, readFile(t, list)); err != nil {
		t.Fatal(err)
	}
	s.mustPush(t, "acme/boats:v1.1.0", "Ship")
	if !isSame() {
		t.Error("the list was copied after a change")
	}
	if err := os.Remove(last); err != nil {
		t.Fatal(err)
	}
	s.mustPush(t, "acme/boats:v1.2.0", "Raft")
	if !isSame() {
		t.Error("the list has no second name again")
	}
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
