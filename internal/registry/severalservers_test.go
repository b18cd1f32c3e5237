package registry_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestOfSeveralServersOnePublishesTheIndex starts two servers in front of one registry. The second one publishes after the first one
// has not renewed its lease, and the first one does not overwrite the index when it wakes up.
func TestOfSeveralServersOnePublishesTheIndex(t *testing.T) {
	address := startOlareg(t)
	direct := remote.New(remote.Options{})
	t.Cleanup(direct.Close)
	push := func(repository, kind string) {
		t.Helper()
		name := repository[strings.LastIndexByte(repository, '/')+1:]
		if _, err := direct.Push(t.Context(), oci.MustParseReference(address+"/"+repository+":v1.0.0"), build(t, packageYAML(name, kind))); err != nil {
			t.Fatal(err)
		}
	}
	const boats, rafts, cars = "acme/provider-boats", "acme/provider-rafts", "acme/provider-cars"
	now := newClock()
	var log buffer.Buffer
	defer func() {
		if strings.Contains(log.String(), "cannot publish") {
			t.Errorf("a server that does not publish reports an error:\n%s", log.String())
		}
	}()
	front := func() *server {
		s := start(t, func(o *registry.Options) {
			o.Now, o.Log = now.read, slog.New(slog.NewTextHandler(&log, nil))
			o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{boats, rafts, cars}, PublishIndex: true, LeaseSettle: time.Minute}
		})
		s.waitUntil(t, "the first index is ready", func() bool { return s.Site().Healthy() == nil })
		return s
	}
	// update waits for an update of a server that starts after the call.
	update := func(s *server, repository string) {
		t.Helper()
		for range 2 {
			_, before := s.Site().Updated()
			s.Site().Changed(repository)
			s.waitUntil(t, "an update", func() bool {
				_, n := s.Site().Updated()
				return n > before
			})
		}
	}
	push(boats, "Boat")
	first := front()
	client := newReader(t, first)
	publishes := func(what string, want ...string) oci.Digest {
		t.Helper()
		if got := client.kinds(t); !slices.Equal(got, want) {
			t.Fatalf("%s: the index has the kinds %q, want %q", what, got, want)
		}
		d, err := direct.Resolve(t.Context(), oci.MustParseReference(address+"/index:main"))
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest
	}
	now.add(time.Minute)
	update(first, boats)
	stale := publishes("the first server", "Boat")

	second := front()
	push(rafts, "Raft")
	update(second, rafts)
	if len(second.found(t, "", "kind:Raft")) != 1 {
		t.Error("a server that does not publish has no search of its own")
	}
	publishes("the second server, which has no lease", "Boat")
	for range 4 {
		now.add(time.Minute)
		update(second, rafts)
	}
	want := publishes("the second server, after the expiry", "Boat", "Raft")

	push(cars, "Car")
	update(first, cars)
	if len(first.found(t, "", "kind:Car")) != 1 {
		t.Error("the first server does not update its search")
	}
	if got := publishes("the first server, which wakes up late", "Boat", "Raft"); got != want {
		t.Errorf("the former holder published %s in place of %s", got, want)
	}
	update(second, cars)
	want = publishes("the second server", "Boat", "Car", "Raft")

	// A write of the former holder arrives that the registry has delayed.
	index := oci.MustParseReference(address + "/index:main")
	delayed, err := direct.Artifact(t.Context(), index.WithDigest(stale))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Push(t.Context(), index, delayed); err != nil {
		t.Fatal(err)
	}
	update(second, cars)
	if got := publishes("the second server, after a delayed write", "Boat", "Car", "Raft"); got != want {
		t.Errorf("the holder published %s in place of %s", got, want)
	}
	second.stop()
	for range 2 {
		update(first, cars)
		now.add(time.Minute)
	}
	if _, err := direct.Push(t.Context(), oci.MustParseReference(address+"/"+rafts+":v2.0.0"), build(t, packageYAML("provider-rafts", "Canoe"))); err != nil {
		t.Fatal(err)
	}
	update(first, rafts)
	publishes("the first server, to which the second one released the lease", "Boat", "Canoe", "Car")
}
