package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var errKilled = errors.New("the process was killed")

// machine is a disk that loses, when the power is lost, what was not written to it.
type machine struct {
	root string

	mu    sync.Mutex
	calls int
	// most is the number of calls after which the process is killed; negative for never.
	most int
	// dirty are files whose content is not on the disk, and unsynced folders whose names are not.
	dirty, unsynced map[string]bool
	// renamed are the former contents of files whose new names are not on the disk; nil for a file that did not exist.
	renamed map[string][]byte
}

func newMachine(root string, most int) *machine {
	return &machine{
		root: root, most: most, dirty: map[string]bool{}, unsynced: map[string]bool{}, renamed: map[string][]byte{},
	}
}

// before implements the hook of the disk.
func (m *machine) before(call, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.most >= 0 && m.calls >= m.most {
		return errKilled
	}
	m.calls++
	name, from, _ := strings.Cut(call, " ")
	switch name {
	case "write":
		m.dirty[path] = true
	case "mkdir":
		for at := path; at != m.root; {
			at = filepath.Dir(at)
			m.unsynced[at] = true
		}
	case "sync":
		delete(m.dirty, path)
		delete(m.unsynced, path)
		maps.DeleteFunc(m.renamed, func(name string, _ []byte) bool { return filepath.Dir(name) == path })
	case "rename":
		if m.dirty[from] {
			delete(m.dirty, from)
			m.dirty[path] = true
		}
		m.unsynced[filepath.Dir(path)] = true
		former, err := os.ReadFile(path)
		if err != nil {
			former = nil
		}
		if _, known := m.renamed[path]; !known {
			m.renamed[path] = former
		}
	}
	return nil
}

// losePower damages what is not on the disk: files lose their content, and their new names if the names get lost, too.
func (m *machine) losePower(t *testing.T, losesNames bool) {
	t.Helper()
	for path := range m.dirty {
		if err := os.Truncate(path, 0); err != nil && !isAbsent(err) {
			t.Fatal(err)
		}
	}
	if !losesNames {
		return
	}
	for path, former := range m.renamed {
		err := os.Remove(path)
		if former != nil {
			err = os.WriteFile(path, former, 0o600)
		}
		if err != nil && !isAbsent(err) {
			t.Fatal(err)
		}
	}
}

// openOn opens a store on a machine.
func openOn(t *testing.T, m *machine) *Store {
	t.Helper()
	s := Open(m.root, Options{Volatile: true, Grace: time.Hour})
	s.disk.before = m.before
	return s
}

const testRepository = "acme/boats"

// content is the content of a test: blobs, and manifests that need them.
type content struct {
	blobs, manifests map[string][]byte
}

// digest returns the digest of named content.
func (c content) digest(name string) Digest {
	if raw, ok := c.blobs[name]; ok {
		return DigestOf(raw, "")
	}
	return DigestOf(c.manifests[name], "")
}

// newContent returns two images, two referrers of the first one, an index of the images, and one of that index and a
// referrer.
func newContent(t testing.TB) content {
	t.Helper()
	c := content{
		blobs:     map[string][]byte{"config": []byte("{}"), "layer": []byte("layer"), "other": []byte("other")},
		manifests: map[string][]byte{},
	}
	descriptor := func(name, mediaType string) Descriptor {
		raw := append(bytes.Clone(c.blobs[name]), c.manifests[name]...)
		return Descriptor{MediaType: mediaType, Digest: DigestOf(raw, ""), Size: int64(len(raw))}
	}
	add := func(name string, m map[string]any) {
		m["schemaVersion"], m["annotations"] = 2, map[string]string{"name": name}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c.manifests[name] = raw
	}
	image := func(name, layer string, subject string) {
		m := map[string]any{
			"mediaType": ociManifest, "config": descriptor("config", "application/example"),
			"layers": []Descriptor{descriptor(layer, "application/layer")},
		}
		if subject != "" {
			m["subject"] = descriptor(subject, ociManifest)
		}
		add(name, m)
	}
	index := func(name string, parts ...Descriptor) {
		add(name, map[string]any{"mediaType": ociIndex, "manifests": parts})
	}
	image("a", "layer", "")
	image("b", "other", "")
	image("signature", "layer", "a")
	image("status", "other", "a")
	index("index", descriptor("a", ociManifest), descriptor("b", ociManifest))
	index("nested", descriptor("index", ociIndex), descriptor("status", ociManifest))
	return c
}

func (c content) upload(s *Store, name string) error {
	u, err := s.StartUpload(testRepository)
	if err != nil {
		return err
	}
	return u.Commit(context.Background(), bytes.NewReader(c.blobs[name]), 0, c.digest(name))
}

func (c content) put(s *Store, name, tag string) error {
	_, err := s.PutManifest(context.Background(), testRepository, tag, c.digest(name), "", c.manifests[name])
	return err
}

// seen returns everything that a client sees of the repository.
func (c content) seen(t *testing.T, s *Store) string {
	t.Helper()
	tags, _, err := s.Tags(testRepository)
	if err != nil && !errors.Is(err, ErrRepositoryUnknown) {
		t.Fatal("the repository cannot be read:", err)
	}
	var out strings.Builder
	fmt.Fprintln(&out, tags) // In the order of the tags.
	for _, name := range []string{"a", "b", "signature", "status", "index", "nested"} {
		f, err := s.Manifest(testRepository, string(c.digest(name)))
		if err == nil {
			_ = f.Close()
		}
		referrers, failed := s.Referrers(testRepository, c.digest(name))
		if failed != nil {
			t.Fatal("the referrers cannot be read:", failed)
		}
		fmt.Fprintln(&out, name, err == nil, len(referrers))
		for _, m := range referrers {
			fmt.Fprintln(&out, m.Digest)
		}
	}
	return out.String()
}

// steps are changes of a repository, in their order.
func (c content) steps() []func(s *Store) error {
	ctx := context.Background()
	upload := func(name string) func(*Store) error { return func(s *Store) error { return c.upload(s, name) } }
	put := func(name, tag string) func(*Store) error { return func(s *Store) error { return c.put(s, name, tag) } }
	return []func(s *Store) error{
		upload("config"), upload("layer"), upload("other"), put("a", "v1"), put("b", ""), put("signature", ""),
		put("status", "s"), put("a", "v2"), put("b", "v2"),
		put("index", "v3"), put("nested", ""),
		func(s *Store) error { return s.DeleteTag(ctx, testRepository, "v1") },
		func(s *Store) error { return s.DeleteManifest(ctx, testRepository, c.digest("signature")) },
		func(s *Store) error { return s.DeleteManifest(ctx, testRepository, c.digest("nested")) },
		put("signature", "again"),
	}
}

// TestAKillAtAnyCallLeavesTheOldOrTheNewState kills the process, or the machine, before each change of a file, and
// opens the folder again.
func TestAKillAtAnyCallLeavesTheOldOrTheNewState(t *testing.T) {
	if testing.Short() {
		t.Skip("writes to the disk many times")
	}
	t.Parallel()
	c := newContent(t)
	for _, how := range []string{"kill", "power", "power and names"} {
		for number := range c.steps() {
			t.Run(fmt.Sprint(how, " ", number), func(t *testing.T) {
				t.Parallel()
				former := c.after(t, number)
				for calls, ended := 0, false; !ended; calls++ {
					ended = c.killAt(t, former, number, calls, how)
				}
			})
		}
	}
}

// after returns a folder after a number of steps.
func (c content) after(t *testing.T, number int) (root string) {
	t.Helper()
	root = t.TempDir()
	s := Open(root, Options{Volatile: true, Grace: time.Hour})
	for _, step := range c.steps()[:number] {
		if err := step(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

// killAt makes a step in a copy of a folder, and kills it after a number of calls. It reports whether the step ended
// before.
func (c content) killAt(t *testing.T, former string, number, calls int, how string) (ended bool) {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(former)); err != nil {
		t.Fatal(err)
	}
	m := newMachine(root, calls)
	s := openOn(t, m)
	before := c.seen(t, s)
	err := c.steps()[number](s)
	for _, u := range s.uploads {
		_ = u.file.Close() // The kernel does.
	}
	if err == nil && (len(m.dirty) > 0 || len(m.renamed) > 0 || len(m.unsynced) > 0) {
		t.Errorf("acknowledged although not on the disk: content %v, names %v, folders %v", m.dirty, m.renamed, m.unsynced)
	}
	if how != "kill" {
		m.losePower(t, how == "power and names")
	}
	s = Open(root, Options{Volatile: true, Grace: time.Hour})
	defer s.Close()
	found := c.seen(t, s)
	if err == nil && number < 3 {
		if has, err := s.has(testRepository, c.digest([]string{"config", "layer", "other"}[number])); err != nil || !has {
			t.Errorf("the acknowledged blob: %t, %v", has, err)
		}
	}
	if damage := s.Damage(func(string) bool { return true }); damage != (Damage{}) {
		t.Errorf("after %d calls: %+v", calls, damage)
	}
	if err := c.steps()[number](s); err != nil && !errors.Is(err, ErrManifestUnknown) {
		t.Errorf("after %d calls, the repetition: %v", calls, err)
	}
	after := c.seen(t, s)
	if found != after && (found != before || err == nil) {
		t.Errorf("after %d calls (%v), the state is\n%s\nthe old one\n%s\nthe new one\n%s", calls, err, found, before, after)
	}
	if names, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(testRepository), uploadsFolder)); len(names) > 0 {
		t.Errorf("after %d calls, files are left: %v, %v", calls, names, err)
	}
	return err == nil
}

// TestAFaultOfTheDiskLeavesTheOldOrTheNewState makes each call fail once, without a restart.
func TestAFaultOfTheDiskLeavesTheOldOrTheNewState(t *testing.T) {
	t.Parallel()
	c := newContent(t)
	s := Open(t.TempDir(), Options{Volatile: true, Grace: time.Hour})
	defer s.Close()
	for number, step := range c.steps() {
		states := []string{c.seen(t, s)}
		for calls, isDone := 0, false; !isDone; calls++ {
			left := calls
			s.disk.before = func(string, string) error {
				if left--; left == -1 {
					return errors.New("no space")
				}
				return nil
			}
			err := step(s)
			s.disk.before = nil
			states = append(states, c.seen(t, s))
			isDone = err == nil || errors.Is(err, ErrManifestUnknown) // A call failed after the deletion.
		}
		for i, found := range states {
			if found != states[0] && found != states[len(states)-1] {
				t.Errorf("step %d, call %d: the state is\n%s", number, i-1, found)
			}
		}
	}
}
