package registry_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// The index keeps its packages when the backend lists no repositories or tags for a moment, and loses them when it has none for longer.
func TestAnEmptyListOfABackendKeepsTheIndex(t *testing.T) {
	images := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	t.Cleanup(func() { _ = images.Close() })
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
		s.mustPush(t, "acme/provider-boats:latest", "Boat")
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
