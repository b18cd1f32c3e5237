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

// TestConcurrentChangesLoseNothing pushes tags and referrers of one subject at the same time, while garbage is
// collected.
func TestConcurrentChangesLoseNothing(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 5
	c := newContent(t)
	s := Open(t.TempDir(), Options{Volatile: true, Grace: time.Hour, Every: time.Millisecond})
	defer s.Close()
	for name := range c.blobs {
		if err := c.upload(s, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.put(s, "a", "v1"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				tag := fmt.Sprintf("w%d-%d", w, i)
				content := bytes.Replace(c.manifests["signature"], []byte(`"signature"`), []byte(`"`+tag+`"`), 1)
				if _, err := s.PutManifest(
					context.Background(), testRepository, tag, DigestOf(content, ""), "", content,
				); err != nil {
					t.Errorf("%s: %v", tag, err)
				}
			}
		})
	}
	group.Wait()
	tags, _, err := s.Tags(testRepository)
	if err != nil || len(tags) != writers*each+1 {
		t.Errorf("%d tags, want %d: %v", len(tags), writers*each+1, err)
	}
	if found, err := s.Referrers(testRepository, c.digest("a")); err != nil || len(found) != writers*each {
		t.Errorf("%d referrers, want %d: %v", len(found), writers*each, err)
	}
}

// TestADamagedIndexOfReferrersIsNotEmpty damages the index of the referrers of a manifest: a push would lose the
// others.
func TestADamagedIndexOfReferrersIsNotEmpty(t *testing.T) {
	t.Parallel()
	c := newContent(t)
	root := t.TempDir()
	s := Open(root, Options{Volatile: true})
	defer func() { _ = s.Close() }()
	for _, step := range c.steps()[:6] {
		if err := step(s); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.load(testRepository)
	if err != nil {
		t.Fatal(err)
	}
	index, _ := st.list.referrers(c.digest("a"))
	dir := filepath.Join(root, filepath.FromSlash(testRepository))
	former, err := os.ReadFile(index.Digest.file(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", "{}", strings.Replace(string(former), "signature", "forgeries", 1)} {
		if err := os.WriteFile(index.Digest.file(dir), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := s.Referrers(testRepository, c.digest("a")); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v, %v", damaged, found, err)
		}
		if err := c.put(s, "status", ""); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: a push: %v", damaged, err)
		}
		s.Collect(t.Context())
	}
	if err := os.WriteFile(index.Digest.file(dir), former, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.put(s, "status", ""); err != nil {
		t.Error(err)
	}
	if found, err := s.Referrers(testRepository, c.digest("a")); err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestReferrersOfAFallbackTag reads a folder of another program, whose referrers are in the tag for them.
func TestReferrersOfAFallbackTag(t *testing.T) {
	t.Parallel()
	c := newContent(t)
	root := t.TempDir()
	s := Open(root, Options{Volatile: true, Grace: time.Hour})
	defer func() { _ = s.Close() }()
	for _, step := range c.steps()[:6] {
		if err := step(s); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.load(testRepository)
	if err != nil {
		t.Fatal(err)
	}
	l := st.list.clone()
	index, _ := l.referrers(c.digest("a"))
	l.refer(c.digest("a"), nil)
	l.add(index, c.digest("a").fallbackTag())
	l.Annotations = maps.Clone(l.Annotations)
	delete(l.Annotations, noFallbackAnnotation)
	document, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(root, filepath.FromSlash(testRepository), listFile), document, 0o600,
	); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Referrers(testRepository, c.digest("a")); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	if err := c.put(s, "status", ""); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Referrers(testRepository, c.digest("a")); err != nil || len(found) != 2 {
		t.Errorf("after a push: %v, %v", found, err)
	}
	if tags, _, err := s.Tags(testRepository); err != nil || tags[c.digest("a").fallbackTag()] != index.Digest {
		t.Errorf("the tags: %v, %v", tags, err)
	}
}

// TestACollectionRemovesOldGarbageOnly ages a part of the content that nothing needs.
func TestACollectionRemovesOldGarbageOnly(t *testing.T) {
	t.Parallel()
	c := newContent(t)
	root := t.TempDir()
	s := Open(root, Options{Volatile: true, Grace: time.Hour})
	defer func() { _ = s.Close() }()
	for _, step := range c.steps()[:4] { // Only the blob "other" is not needed.
		if err := step(s); err != nil {
			t.Fatal(err)
		}
	}
	has := func(name string) bool {
		t.Helper()
		has, err := s.has(testRepository, c.digest(name))
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	s.Collect(t.Context())
	if !has("other") {
		t.Error("new content was removed")
	}
	dir := filepath.Join(root, filepath.FromSlash(testRepository))
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"config", "layer", "other", "a"} {
		if err := os.Chtimes(c.digest(name).file(dir), old, old); err != nil {
			t.Fatal(err)
		}
	}
	clear(s.collected) // It is due in an hour.
	s.Collect(t.Context())
	if has("other") || !has("config") || !has("layer") || !has("a") {
		t.Errorf("other %t, config %t, layer %t, manifest %t", has("other"), has("config"), has("layer"), has("a"))
	}
}

// TestTheCacheOfListsHasALimit reads more entries than the cache keeps.
func TestTheCacheOfListsHasALimit(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir(), Options{Volatile: true})
	defer func() { _ = s.Close() }()
	for i := range 5 {
		s.keep(fmt.Sprint("r", i), &state{list: newList(make([]Descriptor, mostCached/2))})
		s.keep(fmt.Sprint("r", i), &state{list: newList(make([]Descriptor, mostCached/2))})
		total := 0
		for _, st := range s.states {
			total += len(st.list.Manifests)
		}
		if total != s.cached || total > mostCached {
			t.Fatalf("%d entries are cached, and %d counted", total, s.cached)
		}
	}
	for name := range s.states {
		s.forget(name)
	}
	if s.cached != 0 || len(s.states) != 0 {
		t.Errorf("%d entries are counted after all were forgotten", s.cached)
	}
}
