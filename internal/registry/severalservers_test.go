package registry_test

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// writers records which servers move the tag of an index, in their order.
type writers struct {
	mu  sync.Mutex
	all []string
}

// of returns the transport of a server.
func (w *writers) of(name string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && r.URL.Path == "/v2/index/manifests/main" {
			w.mu.Lock()
			w.all = append(w.all, name)
			w.mu.Unlock()
		}
		return http.DefaultTransport.RoundTrip(r)
	})
}

// TestOfSeveralServersOnePublishesTheIndex starts three servers in front of one registry. One of the others
// publishes after the first one has lost the API server, and the first one does not overwrite the index when it has
// it back.
func TestOfSeveralServersOnePublishesTheIndex(t *testing.T) {
	address, in, by := startRegistry(t), inCluster(t), &writers{}
	direct := remote.New(remote.Options{})
	t.Cleanup(direct.Close)
	const boats, rafts, cars = "acme/provider-boats", "acme/provider-rafts", "acme/provider-cars"
	push := func(repository, version, kind string) {
		t.Helper()
		name := repository[strings.LastIndexByte(repository, '/')+1:]
		ref := oci.MustParseReference(address + "/" + repository + ":" + version)
		if _, err := direct.Push(t.Context(), ref, build(t, packageYAML(name, kind))); err != nil {
			t.Fatal(err)
		}
	}
	var log buffer.Buffer
	front := func(name string, access *cluster.Config) *server {
		s := start(t, func(o *registry.Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.Backend = &registry.BackendOptions{
				Host: address, PlainHTTP: true, Repositories: []string{boats, rafts, cars}, PublishIndex: true,
				Cluster: access, Transport: by.of(name),
			}
		})
		s.waitUntil(t, "the first index is ready", func() bool { return s.Site().Healthy() == nil })
		return s
	}
	var isCut atomic.Bool
	first := front("first", wrapped(in, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if isCut.Load() {
				return nil, io.ErrUnexpectedEOF
			}
			return next.RoundTrip(r)
		})
	}))
	client := newReader(t, first)
	var delayed oci.Digest
	// publishes waits until the index has some kinds, while servers look for changes.
	publishes := func(what string, servers []*server, want ...string) oci.Digest {
		t.Helper()
		var current oci.Descriptor
		wait.Until(t, 2*time.Minute, what, func() (string, bool) {
			for _, s := range servers {
				s.Site().CheckAll()
			}
			var err error
			current, err = direct.Resolve(t.Context(), oci.MustParseReference(address+"/index:main"))
			if err != nil || current.Digest == delayed {
				return current.Digest.String(), false // Clients refuse the state that was delayed.
			}
			got := client.kinds(t)
			return strings.Join(got, " "), slices.Equal(got, want)
		})
		return current.Digest
	}
	push(boats, "v1.0.0", "Boat")
	stale := publishes("the first server", []*server{first}, "Boat")

	second, third := front("second", in), front("third", in)
	push(rafts, "v1.0.0", "Raft")
	second.Site().CheckAll()
	second.waitUntil(
		t, "a server that does not publish has a search of its own",
		func() bool { return len(second.found(t, "", "kind:Raft")) == 1 },
	)
	publishes("the first server", []*server{first, second, third}, "Boat", "Raft")
	if by.all = slices.Compact(by.all); !slices.Equal(by.all, []string{"first"}) {
		t.Fatalf("%q have published the index", by.all)
	}

	election := in.Election(address, "")
	holder := func() string {
		lease, err := clientsOf(t, in).CoordinationV1().Leases(in.Namespace).
			Get(t.Context(), election.Name, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	before := holder()
	isCut.Store(true)
	wait.Until(
		t, 2*time.Minute, "another server holds the Lease", func() (string, bool) { return holder(), holder() != before },
	)
	push(cars, "v1.0.0", "Car")
	want := publishes("another server", []*server{first, second, third}, "Boat", "Car", "Raft")
	isCut.Store(false)
	leader, standby := second, third
	if by.all = slices.Compact(by.all); by.all[len(by.all)-1] == "third" {
		leader, standby = third, second
	}

	// A write of the former holder arrives that the registry has delayed.
	index := oci.MustParseReference(address + "/index:main")
	former, err := direct.Artifact(t.Context(), index.WithDigest(stale))
	if err != nil {
		t.Fatal(err)
	}
	if delayed, err = direct.Push(t.Context(), index, former); err != nil {
		t.Fatal(err)
	}
	if got := publishes(
		"the leader, after a delayed write", []*server{first, second, third}, "Boat", "Car", "Raft",
	); got != want {
		t.Errorf("the leader published %s in place of %s", got, want)
	}
	if by.all = slices.Compact(by.all); len(by.all) != 2 {
		t.Errorf("%q have published the index", by.all)
	}
	leader.stop()
	push(rafts, "v2.0.0", "Canoe")
	publishes("a server to which the former one released the Lease", []*server{first, standby}, "Boat", "Canoe", "Car")
	if strings.Contains(log.String(), "cannot publish") {
		t.Errorf("a server that does not publish reports an error:\n%s", log.String())
	}
}
