package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	ociimage "github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// model holds the packages that a cache must keep: the wanted ones, and the ones used
// within the grace period.
type model struct {
	t      *rapid.T
	cache  *Cache
	clock  *clock
	images []*ociimage.Image
	files  []string
	used   map[string][]int
	named  map[int]bool
	last   map[int]time.Time
	had    map[int]bool
}

// kept reports whether a package may not be removed.
func (m *model) kept(i int) bool {
	if last, ok := m.last[i]; ok && m.clock.now.Sub(last) < grace || m.named[i] {
		return true
	}
	for _, of := range m.used {
		if slices.Contains(of, i) {
			return true
		}
	}
	return false
}

// check compares the cache with the model, and updates the model.
func (m *model) check() {
	if n := diskSize(m.t, m.cache); n > m.cache.limit {
		m.t.Fatalf("the cache has %d bytes, more than %d", n, m.cache.limit)
	}
	// The tally that all processes share is never too small.
	if err := m.cache.store.Exclusive(m.t.Context(), func() error {
		n, err := m.cache.store.Bytes(m.t.Context())
		if tally, ok := m.cache.store.Tally(); ok && tally.Bytes < n {
			m.t.Fatalf("the cache has %d bytes, more than the %d that were counted", n, tally.Bytes)
		}
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
	for i, img := range m.images {
		err := stream(m.t.Context(), m.cache.Store().Peek(), img.Digest())
		if err != nil && !errors.Is(err, oci.ErrBlobNotFound) {
			m.t.Fatalf("package %d cannot be read: %v", i, err)
		}
		if err != nil && m.had[i] && m.kept(i) {
			m.t.Fatalf("package %d was removed", i)
		}
		m.had[i] = err == nil
	}
}

// allowed reports whether err is the error of a full cache.
func (m *model) allowed(err error) bool {
	if err != nil && !errors.Is(err, ErrCacheFull) && !errors.Is(err, ErrCacheBusy) {
		m.t.Fatal(err)
	}
	return err == nil
}

func (m *model) actions() map[string]func(*rapid.T) {
	any := rapid.IntRange(0, len(m.images)-1)
	return map[string]func(*rapid.T){
		"": func(*rapid.T) { m.check() },
		"fetch": func(t *rapid.T) {
			i := any.Draw(t, "package")
			if m.allowed(put(t.Context(), m.cache, m.images[i])) {
				m.last[i] = m.clock.now
			}
		},
		"keep what was derived": func(t *rapid.T) {
			i := any.Draw(t, "package")
			key := store.DerivedKey{Digest: m.images[i].Digest(), Name: "objects"}
			m.allowed(m.cache.Store().PutDerived(t.Context(), key, make([]byte, rapid.IntRange(0, 3000).Draw(t, "bytes"))))
		},
		"read": func(t *rapid.T) {
			i := any.Draw(t, "package")
			if stream(t.Context(), m.cache.Store(), m.images[i].Digest()) == nil {
				m.last[i] = m.clock.now
			}
		},
		"use": func(t *rapid.T) {
			owner := fmt.Sprint("cluster ", rapid.IntRange(0, 1).Draw(t, "owner"))
			m.used[owner] = rapid.SliceOfN(any, 0, 3).Draw(t, "packages")
			var roots []oci.Digest
			for _, i := range m.used[owner] {
				roots = append(roots, m.images[i].Digest())
			}
			must(t, m.cache.Use(owner, roots))
		},
		"add": func(t *rapid.T) {
			i := any.Draw(t, "package")
			_, err := m.cache.Add(t.Context(), m.files[i], fmt.Sprint("name-", i))
			if m.allowed(err) {
				m.last[i], m.named[i] = m.clock.now, true
			}
		},
		"wait": func(t *rapid.T) {
			m.clock.advance(time.Duration(rapid.IntRange(1, 30).Draw(t, "minutes")) * time.Minute)
		},
		"open again": func(t *rapid.T) {
			must(t, m.cache.Close())
			c, err := Open(m.cache.Dir(), Options{Limit: m.cache.limit, Now: m.clock.Now})
			must(t, err)
			m.cache = c
		},
		"prune": func(t *rapid.T) {
			_, err := m.cache.Prune(t.Context(), PruneOptions{
				MaxBytes:  int64(rapid.IntRange(0, 5000).Draw(t, "bytes")),
				OlderThan: time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute,
			})
			must(t, err)
		},
		"prune all": func(t *rapid.T) {
			m.named = map[int]bool{}
			_, err := m.cache.Prune(t.Context(), PruneOptions{All: true})
			must(t, err)
			for i := range m.images {
				if _, err := m.cache.Named(t.Context(), fmt.Sprint("name-", i)); err == nil {
					m.named[i] = true
				}
			}
		},
		"verify": func(t *rapid.T) {
			r, err := m.cache.Verify(t.Context())
			must(t, err)
			if len(r.Damaged) > 0 {
				t.Fatalf("damaged: %+v", r.Damaged)
			}
		},
		"list": func(t *rapid.T) {
			_, err := m.cache.List(t.Context())
			must(t, err)
		},
	}
}

// For any sequence of operations, content in use is never removed, and the cache never
// exceeds its limit.
//
// hardening: K3
func TestInUseIsNeverRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred random histories take ten seconds")
	}
	folder := t.TempDir()
	var images []*ociimage.Image
	var files []string
	for i := range 6 {
		img := image(t, fmt.Sprint("package-", i), 300*i)
		path := filepath.Join(folder, fmt.Sprint(i, ".xpkg"))
		must(t, os.WriteFile(path, archive(t, img), 0o600))
		images, files = append(images, img), append(files, path)
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(folder, "cache-*")
		must(rt, err)
		clock := newClock()
		c, err := Open(dir, Options{Limit: int64(rapid.IntRange(2000, 8000).Draw(rt, "limit")), Now: clock.Now})
		must(rt, err)
		m := &model{
			t: rt, cache: c, clock: clock, images: images, files: files,
			used: map[string][]int{}, named: map[int]bool{}, last: map[int]time.Time{}, had: map[int]bool{},
		}
		defer func() { must(rt, m.cache.Close()) }()
		rt.Repeat(m.actions())
	})
}
