package indexer

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A machine that has an index in its package cache finds out that its registry has lost or changed a part of it.
func TestVerifyStoredReadsTheRegistry(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	c := build(t, m, s.config("one"))
	ref := s.ref("index", "main")
	r := publishAt(t, m, ref, c, nil, day(1), time.Time{})
	manifest := r.Manifest()
	lost := "/blobs/" + manifest.Kinds.Digest.String()
	for name, tc := range map[string]struct {
		path   string
		answer func(w http.ResponseWriter)
		code   errcode.Code
	}{
		"complete":   {},
		"lost layer": {lost, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, oci.ErrBlobMissing},
		"truncated":  {lost, func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) }, catalog.ErrTruncatedIndex},
		"changed": {
			lost, func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, manifest.Kinds.Size)) }, catalog.ErrMixedIndex,
		},
		"lost manifest": {
			"/manifests/sha256:", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, oci.ErrManifestNotFound,
		},
		"unavailable": {
			lost, func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, remote.ErrRegistryUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.change = func(w http.ResponseWriter, r *http.Request) bool {
				matches := tc.path != "" && strings.Contains(r.URL.Path, tc.path)
				if matches {
					tc.answer(w)
				}
				return matches
			}
			defer func() { s.change = nil }()
			if _, err := m.client().Open(t.Context(), ref); err != nil && tc.path == lost {
				t.Errorf("the package cache has the index: %v", err)
			}
			err := m.client().VerifyStored(t.Context(), ref, &manifest)
			if tc.code.Name == "" && err != nil || tc.code.Name != "" && !errors.Is(err, tc.code) {
				t.Errorf("got %v, want %q", err, tc.code.Name)
			}
			if want := err != nil && name != "unavailable"; IsDamaged(err) != want {
				t.Errorf("%v is damage: %v", err, !want)
			}
		})
	}
}

// The newest known state of an index is that of the registry, or the one that this machine has seen or published if the
// registry has lost it.
func TestLastIsTheNewestKnownState(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	m := newMachine(t, nil)
	c := build(t, m, s.config("one"))
	ref := s.ref("index", "main")
	first := publishAt(t, newMachine(t, nil), ref, c, nil, day(1), time.Time{})
	next := Publishing{Former: first, FormerCatalog: &c, Catalog: c, Created: day(2), Snapshot: true}
	image, _, err := next.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), m.Remote, ref, &image, first); err != nil {
		t.Fatal(err)
	}
	if err := m.client().Published(t.Context(), ref, &image); err != nil {
		t.Fatal(err)
	}
	last := func(m *machine) int64 {
		t.Helper()
		_, config, err := m.client().Last(t.Context(), ref)
		if err != nil && !errors.Is(err, ErrIndexNotFound) {
			t.Fatal(err)
		}
		return config.Sequence
	}
	if got := last(newMachine(t, nil)); got != 2 {
		t.Errorf("the registry has the state %d", got)
	}
	copyTag(t, s, first, ref)
	if _, err := m.client().Open(t.Context(), ref); !errors.Is(err, ErrStaleIndex) {
		t.Errorf("the publisher of a newer state gets %v", err)
	}
	if published, other := last(m), last(newMachine(t, nil)); published != 2 || other != 1 {
		t.Errorf(
			"after the registry was set back, the publisher knows the state %d, and another machine %d", published, other,
		)
	}
	s.change = func(w http.ResponseWriter, r *http.Request) bool {
		isTag := strings.HasSuffix(r.URL.Path, "/manifests/main")
		if isTag {
			w.WriteHeader(http.StatusNotFound)
		}
		return isTag
	}
	if published, other := last(m), last(newMachine(t, nil)); published != 2 || other != 0 {
		t.Errorf("without the tag, the publisher knows the state %d, and another machine %d", published, other)
	}
}

// A build reports what it could not read, and could read later.
func TestBuildReportsWhatItCannotReadNow(t *testing.T) {
	s := newServer(t)
	s.push(t, "one", "v1.0.0", true, "Bucket")
	s.push(t, "two", "v1.0.0", true, "Bucket")
	for path, want := range map[string]int{"/one/tags/list": 1, "/one/manifests/": 1, "/absent/": 0} {
		s.change = func(w http.ResponseWriter, r *http.Request) bool {
			matches := strings.Contains(r.URL.Path, path)
			if matches {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return matches
		}
		b := NewBuilder(newMachine(t, nil).Options)
		if _, err := b.Build(t.Context(), s.config("one", "two")); err != nil {
			t.Fatal(err)
		}
		unread := b.Unread()
		if len(unread) != want || want > 0 && unread[0].Repository != s.host+"/acme/one" {
			t.Errorf("%s: got %v", path, unread)
		}
	}
}
