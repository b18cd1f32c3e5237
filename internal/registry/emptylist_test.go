package registry_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// The index keeps its packages when the backend lists no repositories or tags for a moment, and loses them when it has
// none for longer.
func TestAnEmptyListOfABackendKeepsTheIndex(t *testing.T) {
	images := localregistry.New(t)
	var list, tags atomic.Value
	list.Store(`{"repositories":["acme/provider-boats"]}`)
	tags.Store("")
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/_catalog" {
			_, _ = io.WriteString(w, list.Load().(string))
			return
		}
		if text := tags.Load().(string); text != "" && strings.HasSuffix(r.URL.Path, "/tags/list") {
			_, _ = io.WriteString(w, text)
			return
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	now := newClock()
	s := start(t, func(o *registry.Options) {
		o.Now, o.Backend = now.read, &registry.BackendOptions{Host: address, PlainHTTP: true}
	})
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.waitUntil(t, "the package is indexed", func() bool { return len(s.found(t, "", "kind:Boat")) == 1 })
	update := func() {
		t.Helper()
		_, before := s.Site().Updated()
		s.mustPush(t, "acme/provider-boats:latest", fmt.Sprint("Raft", before))
		s.waitUntil(t, "an update", func() bool { _, updates := s.Site().Updated(); return updates > before })
	}
	for _, empty := range []string{`{}`, `{"repositories":[]}`, `{"repositories":null}`} {
		full := list.Load()
		list.Store(empty)
		update()
		if got := s.found(t, "", "kind:Boat"); len(got) != 1 {
			t.Errorf("after the list %s: %q", empty, got)
		}
		list.Store(full)
		now.add(10 * time.Minute)
		update()
	}
	tags.Store(`{"name":"acme/provider-boats","tags":null}`)
	for range 2 { // The first update can have begun before.
		_, before := s.Site().Updated()
		s.Site().CheckAll()
		s.waitUntil(t, "an update", func() bool { _, updates := s.Site().Updated(); return updates > before })
	}
	if got := s.found(t, "", "kind:Boat"); len(got) != 1 {
		t.Errorf("after an empty list of tags: %q", got)
	}
	tags.Store("")
	update()
	list.Store(`{"repositories":[]}`)
	update()
	now.add(10 * time.Minute)
	s.waitUntil(t, "the index is empty", func() bool { update(); return len(s.found(t, "", "kind:Boat")) == 0 })
}

// TestAServerThatStartsKeepsTheIndexOfAnEmptyList starts servers while their backend lists nothing: with the folder of
// a server that has indexed a package, and with a new one, which finds the package in the published index.
func TestAServerThatStartsKeepsTheIndexOfAnEmptyList(t *testing.T) {
	images := localregistry.New(t)
	var list, tags atomic.Value
	list.Store("")
	tags.Store("")
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch text := list.Load().(string); {
		case r.URL.Path == "/v2/_catalog" && text != "":
			_, _ = io.WriteString(w, text)
		case strings.HasPrefix(r.URL.Path, "/v2/acme/") && strings.HasSuffix(r.URL.Path, "/tags/list") && tags.Load() != "":
			_, _ = io.WriteString(w, tags.Load().(string))
		default:
			images.ServeHTTP(w, r)
		}
	})).URL, "http://")
	const full = `{"repositories":["acme/provider-boats","index"]}`
	now := newClock()
	front := func(dir string, publishes bool) *server {
		return start(t, func(o *registry.Options) {
			if dir != "" {
				o.Dir = dir
			}
			o.Now = now.read
			o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, PublishIndex: publishes}
		})
	}
	update := func(s *server) {
		t.Helper()
		for range 2 { // The first update can have begun before.
			_, before := s.Site().Updated()
			s.Site().CheckAll()
			s.waitUntil(t, "an update", func() bool { _, updates := s.Site().Updated(); return updates > before })
		}
	}
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	published := func() oci.Digest {
		t.Helper()
		d, err := client.Resolve(t.Context(), oci.MustParseReference(address+"/index:main"))
		if err != nil && !errors.Is(err, remote.ErrRepositoryNotFound) && !errors.Is(err, remote.ErrTagNotFound) {
			t.Fatal(err)
		}
		return d.Digest
	}
	list.Store(full)
	first := front("", true)
	first.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	first.waitUntil(t, "the index is published", func() bool {
		now.add(time.Second)
		update(first)
		return len(first.found(t, "", "kind:Boat")) == 1 && !published().IsZero()
	})
	before := published()
	first.stop()
	private := front("", false)
	private.waitUntil(t, "the index is ready", func() bool { return len(private.found(t, "", "kind:Boat")) == 1 })
	private.stop()

	for _, empty := range []struct{ list, tags string }{{`{"repositories":[]}`, ""}, {
		full, `{"name":"acme/provider-boats","tags":null}`,
	}} {
		list.Store(empty.list)
		tags.Store(empty.tags)
		for name, dir := range map[string]string{"the folder of the server": first.dir, "a new folder": ""} {
			s := front(dir, true)
			update(s)
			now.add(time.Minute)
			update(s)
			if s.Site().Healthy() == nil || published() != before {
				t.Errorf("with %s and the lists %q: the server publishes %s instead of %s", name, empty, published(), before)
			}
			s.stop()
		}
		s := front(private.dir, false)
		if update(s); s.Site().Healthy() == nil {
			t.Errorf("without a published index, with the lists %q: the index is ready", empty)
		}
		s.stop()
		other := front("", false)
		other.waitUntil(
			t, "a server that has recorded no package is ready", func() bool { return other.Site().Healthy() == nil },
		)
		other.stop()
	}
	s := front(first.dir, true)
	update(s)
	now.add(10 * time.Minute)
	s.waitUntil(t, "the empty index is published", func() bool {
		now.add(time.Second)
		update(s)
		return s.Site().Healthy() == nil && published() != before
	})
	now.add(time.Minute)
	if update(s); s.Site().Healthy() != nil {
		t.Error("the empty index is not ready any more")
	}
}
