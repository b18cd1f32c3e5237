package registry_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/indexkey"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// laterPrivate is the policy of the tests with one more private part.
const laterPrivate = policy + "- prefix: acme/later\n  private: true\n  owners: [alice]\n"

// indexRepositories are the repositories of the tests of the published index, for registries that do not list them.
var indexRepositories = []string{"acme/provider-boats", "acme/later/provider-plans", "acme/provider-rafts"}

// indexModes are the ways in which a server stores its published index.
func indexModes() map[string]func(t *testing.T) func(*registry.Options) {
	return map[string]func(t *testing.T) func(*registry.Options){
		"folder": func(*testing.T) func(*registry.Options) { return func(*registry.Options) {} },
		"backend": func(t *testing.T) func(*registry.Options) {
			address := startRegistry(t)
			return func(o *registry.Options) {
				o.Backend = &registry.BackendOptions{
					Host: address, PlainHTTP: true, Repositories: indexRepositories, PublishIndex: true,
				}
			}
		},
	}
}

// servedState is a state of the index that a server serves.
type servedState struct {
	manifest string
	blobs    []string
	names    []string
}

// content returns the body of a response, and false unless it has the status 200.
func (s *server) content(t testing.TB, target, token string) ([]byte, bool) {
	t.Helper()
	resp := s.do(t, http.MethodGet, target, token, nil)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, resp.StatusCode == http.StatusOK
}

// states returns the states of the index that a client can read, newest first: it follows the digests of the former
// states.
func (s *server) states(t testing.TB, token string) []servedState {
	t.Helper()
	var found []servedState
	for target := "/v2/index/manifests/main"; ; {
		raw, ok := s.content(t, target, token)
		if !ok {
			return found
		}
		m, err := catalog.ParseManifest(raw)
		if err != nil {
			t.Fatal(err)
		}
		state := servedState{manifest: "/v2/index/manifests/" + m.Digest.String()}
		for _, d := range append([]oci.Descriptor{m.Config}, m.Layers()...) {
			state.blobs = append(state.blobs, "/v2/index/blobs/"+d.Digest.String())
		}
		r, err := catalog.Open(m, func(d oci.Descriptor) ([]byte, error) {
			blob, ok := s.content(t, "/v2/index/blobs/"+d.Digest.String(), token)
			if !ok {
				t.Errorf("a blob of the state %s is not served", m.Digest.Short())
			}
			return blob, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Packages() {
			state.names = append(state.names, p.Repository)
		}
		for _, e := range r.Events() {
			state.names = append(state.names, e.Repository)
		}
		found = append(found, state)
		target = "/v2/index/manifests/" + r.Config().Previous.String()
	}
}

// checkHidden fails if a client can read a state with the package that became private, or a blob that only such states
// have.
func (s *server) checkHidden(t *testing.T, when string, former []servedState) {
	t.Helper()
	public := map[string]bool{}
	for _, state := range slices.Concat(s.states(t, ""), former) {
		if slices.ContainsFunc(state.names, isPlans) {
			continue
		}
		for _, blob := range state.blobs {
			public[blob] = true
		}
	}
	for _, state := range slices.Concat(s.states(t, ""), former) {
		if !slices.ContainsFunc(state.names, isPlans) {
			continue
		}
		for _, target := range append([]string{state.manifest}, state.blobs...) {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				if got := s.do(t, method, target, "", nil).StatusCode; !public[target] && got != http.StatusUnauthorized {
					t.Errorf("%s: %s %s of a former state: %d", when, method, target, got)
				}
			}
		}
	}
}

func isPlans(name string) bool { return strings.HasSuffix(name, "/provider-plans") }

// publishes reports whether the current state of the index has the public packages of the tests alone.
func (s *server) publishes(t testing.TB, host string) bool {
	t.Helper()
	states := s.states(t, "")
	return len(states) > 0 &&
		slices.Equal(states[0].names, []string{host + "/acme/provider-boats", host + "/acme/provider-rafts"})
}

// exists reports whether the registry has one of the states, which an administrator can read.
func (s *server) exists(t testing.TB, states []servedState) bool {
	t.Helper()
	return slices.ContainsFunc(states, func(state servedState) bool {
		_, ok := s.content(t, state.manifest, s.admin)
		return ok
	})
}

// publishThenHide publishes an index with three packages, one of which becomes private after the server has stopped. It
// returns the states with it.
func publishThenHide(t *testing.T, change func(*registry.Options)) (*server, []servedState) {
	t.Helper()
	s := start(t, change)
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	for i, kind := range []string{"Boat", "Plan", "Raft"} {
		s.mustPush(t, indexRepositories[i]+":v1.0.0", kind)
	}
	s.waitUntil(t, "the packages are published", func() bool {
		states := s.states(t, "")
		if len(states) == 0 {
			return false
		}
		names := slices.Compact(slices.Sorted(slices.Values(states[0].names)))
		return len(names) == len(indexRepositories)
	})
	former := s.states(t, "")
	s.stop()
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(laterPrivate), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, former
}

// TestFormerStatesStayHiddenAfterAnInterruption ends a server after it has published the index without a package that
// became private, and before it removed the former states.
func TestFormerStatesStayHiddenAfterAnInterruption(t *testing.T) {
	for name, mode := range indexModes() {
		t.Run(name, func(t *testing.T) {
			change := mode(t)
			first, former := publishThenHide(t, change)
			again := func(o *registry.Options) { change(o); o.Dir = first.dir }
			interrupted := startPrepared(t, again, (*registry.Server).RefuseDeletions)
			interrupted.waitUntil(
				t, "the index without the package is published", func() bool { return interrupted.publishes(t, host) },
			)
			interrupted.checkHidden(t, "before the removal", former)
			interrupted.stop()

			s := start(t, again)
			s.admin = first.admin
			s.checkHidden(t, "after the restart", former)
			s.waitUntil(t, "the former states are removed", func() bool { return !s.exists(t, former) })
			s.checkHidden(t, "after the removal", former)
			if !s.publishes(t, host) {
				t.Error("the current state is not served")
			}
		})
	}
}

// TestFormerStatesAreRemovedWhenTheServerGetsAnotherName changes the name of the index together with the policy.
func TestFormerStatesAreRemovedWhenTheServerGetsAnotherName(t *testing.T) {
	for name, mode := range indexModes() {
		t.Run(name, func(t *testing.T) {
			const other = "other.example.org"
			change := mode(t)
			first, former := publishThenHide(t, change)
			var log buffer.Buffer
			s := start(t, func(o *registry.Options) {
				change(o)
				o.Dir, o.Host, o.Log = first.dir, other, slog.New(slog.NewTextHandler(&log, nil))
			})
			s.admin = first.admin
			s.checkHidden(t, "at the start", former)
			s.waitUntil(t, "the index has the other name", func() bool { return s.publishes(t, other) })
			s.checkHidden(t, "with the other name", former)
			s.waitUntil(t, "the former states are removed", func() bool { return !s.exists(t, former) })
			if strings.Contains(log.String(), "cannot publish") {
				t.Errorf("the server reports an error:\n%s", log.String())
			}
		})
	}
}

// TestFormerStatesStayHiddenInARegistryWithoutDeletions checks that the server does not serve what it cannot remove,
// and reports it once.
func TestFormerStatesStayHiddenInARegistryWithoutDeletions(t *testing.T) {
	for name, mode := range indexModes() {
		t.Run(name, func(t *testing.T) {
			change := mode(t)
			first, former := publishThenHide(t, change)
			var log buffer.Buffer
			again := func(o *registry.Options) {
				change(o)
				o.Dir, o.Log = first.dir, slog.New(slog.NewTextHandler(&log, nil))
			}
			for _, when := range []string{"after the change", "after a restart"} {
				s := startPrepared(t, again, (*registry.Server).RefuseDeletions)
				s.admin = first.admin
				s.checkHidden(t, when+", at once", former)
				s.waitUntil(t, "the index without the package is published", func() bool { return s.publishes(t, host) })
				s.mustPush(t, "acme/provider-rafts:latest", "Raft")
				for range 2 {
					_, before := s.Site().Updated()
					s.Site().CheckAll()
					s.waitUntil(t, "an update", func() bool {
						_, n := s.Site().Updated()
						return n > before
					})
				}
				s.checkHidden(t, when, former)
				if !s.exists(t, former) {
					t.Error("the test deletes the former states")
				}
				s.stop()
			}
			if strings.Contains(log.String(), "cannot publish") {
				t.Errorf("the index was published, and the server reports an error:\n%s", log.String())
			}
			if got := strings.Count(log.String(), "cannot be removed"); got != 2 {
				t.Errorf("two servers report %d times that former states cannot be removed:\n%s", got, log.String())
			}
		})
	}
}

// TestARefusedReadOfTheIndexStartsItsPublication changes the policy of a running server. The first client that reads
// the index is refused, and the index without the package is published before the next check of all repositories.
func TestARefusedReadOfTheIndexStartsItsPublication(t *testing.T) {
	for name, mode := range indexModes() {
		t.Run(name, func(t *testing.T) {
			now := newClock()
			s := startPrepared(t, mode(t), func(s *registry.Server) { s.SetPolicyClock(now.read) })
			s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
			for i, kind := range []string{"Boat", "Plan", "Raft"} {
				s.mustPush(t, indexRepositories[i]+":v1.0.0", kind)
			}
			s.waitUntil(t, "the packages are published", func() bool {
				states := s.states(t, "")
				return len(states) > 0 &&
					len(slices.Compact(slices.Sorted(slices.Values(states[0].names)))) == len(indexRepositories)
			})
			former := s.states(t, "")
			if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(laterPrivate), 0o600); err != nil {
				t.Fatal(err)
			}
			now.add(time.Minute) // The server reads the file again.
			s.checkHidden(t, "after the change", former)
			s.waitUntil(t, "the index without the package is published", func() bool { return s.publishes(t, host) })
			s.checkHidden(t, "after the publication", former)
		})
	}
}

// TestADeletedPackageThatBecomesPrivateLeavesTheJournal deletes a package in the backend before its part of the
// registry becomes private. The journal of the current state names it, and the server still looks for its repository.
func TestADeletedPackageThatBecomesPrivateLeavesTheJournal(t *testing.T) {
	var address string
	mode := indexModes()["backend"](t)
	change := func(o *registry.Options) { mode(o); address = o.Backend.Host }
	first, former := publishThenHide(t, change)
	backend := remote.New(remote.Options{})
	t.Cleanup(backend.Close)
	ref := oci.MustParseReference(address + "/acme/later/provider-plans:v1.0.0")
	d, err := backend.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := backend.Delete(t.Context(), ref.WithDigest(d.Digest)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(first.dir, "access.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	again := func(o *registry.Options) { change(o); o.Dir = first.dir }
	s := start(t, again)
	s.waitUntil(t, "the deletion is published", func() bool {
		states := s.states(t, "")
		return len(states) > len(former) && slices.ContainsFunc(states[0].names, isPlans)
	})
	former = s.states(t, "")
	s.stop()
	if err := os.WriteFile(filepath.Join(first.dir, "access.yaml"), []byte(laterPrivate), 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, again)
	s.waitUntil(t, "the index is published", func() bool { return s.publishes(t, host) })
	s.checkHidden(t, "after the deletion", former)
}

// TestAServerServesNoIndexWithPackagesThatItHides starts two servers in front of one registry, of which the first one
// publishes the index. The policy of the second one changes, and later that of the first one.
func TestAServerServesNoIndexWithPackagesThatItHides(t *testing.T) {
	for _, publishes := range []bool{true, false} {
		name := "with an index of its own"
		if !publishes {
			name = "without an index of its own"
		}
		t.Run(name, func(t *testing.T) {
			mode, in := indexModes()["backend"](t), inCluster(t)
			change := func(o *registry.Options) {
				mode(o)
				o.Backend.Cluster = in
			}
			first := start(t, change)
			for i, kind := range []string{"Boat", "Plan"} {
				first.mustPush(t, indexRepositories[i]+":v1.0.0", kind)
			}
			first.waitUntil(t, "both packages are published", func() bool {
				states := first.states(t, "")
				return len(states) > 0 && len(slices.Compact(slices.Sorted(slices.Values(states[0].names)))) == 2
			})
			former := first.states(t, "")
			var log buffer.Buffer
			now := newClock()
			second := startPrepared(t, func(o *registry.Options) {
				change(o)
				o.Backend.PublishIndex, o.Log = publishes, slog.New(slog.NewTextHandler(&log, nil))
			}, func(s *registry.Server) { s.SetPolicyClock(now.read) })
			second.waitUntil(t, "the server is ready", func() bool { return second.Site().Healthy() == nil })
			if got := second.states(t, ""); len(got) != len(former) || strings.Contains(log.String(), "ERROR") {
				t.Errorf("a server with an equal policy serves %d states instead of %d:\n%s", len(got), len(former), log.String())
			}
			if err := os.WriteFile(filepath.Join(second.dir, "access.yaml"), []byte(laterPrivate), 0o600); err != nil {
				t.Fatal(err)
			}
			now.add(time.Minute) // The server reads the file again.
			second.checkHidden(t, "with another policy", former)
			if got := second.states(t, ""); len(got) > 0 && slices.ContainsFunc(got[0].names, isPlans) {
				t.Error("the index is served")
			}
			user := second.token(t, "mallory", []string{"*"}, access.Read)
			if got := second.do(t, http.MethodGet, "/v2/index/manifests/main", user, nil).
				StatusCode; got != http.StatusNotFound {
				t.Errorf("the index for a user who may not read the package: %d", got)
			}
			for _, token := range []string{second.admin, second.token(t, "alice", []string{"*"}, access.Read)} {
				if got := second.states(t, token); len(got) != len(former) {
					t.Errorf("a user who may read each package reads %d of %d states", len(got), len(former))
				}
			}
			if got := strings.Count(log.String(), "give each server in front of the registry the same access.yaml"); got != 1 {
				t.Errorf("the server reports the different policies %d times:\n%s", got, log.String())
			}
			if got := first.states(t, ""); len(got) != len(former) {
				t.Errorf("the first server serves %d of %d states", len(got), len(former))
			}

			firstDir := first.dir
			first.stop()
			first = start(t, func(o *registry.Options) {
				o.Dir = firstDir
				change(o)
				if err := os.WriteFile(filepath.Join(o.Dir, "access.yaml"), []byte(laterPrivate), 0o600); err != nil {
					t.Fatal(err)
				}
			})
			want := []string{host + "/acme/provider-boats"}
			// The second server can have taken the lease. It publishes within a minute then.
			first.waitAtMost(t, 3*time.Minute, "the index without the package is published", func() bool {
				states := first.states(t, "")
				return len(states) > 0 && slices.Equal(states[0].names, want)
			})
			if got := second.states(t, ""); len(got) == 0 || !slices.Equal(got[0].names, want) {
				t.Errorf("the second server does not serve the new index: %v", got)
			}
		})
	}
}

// TestTheCurrentStateIsCheckedBeforeItsFirstReader checks that the first client of a state does not wait until the
// server has read it.
func TestTheCurrentStateIsCheckedBeforeItsFirstReader(t *testing.T) {
	s := start(t, nil)
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	for i, kind := range []string{"Boat", "Plan", "Raft"} {
		s.mustPush(t, indexRepositories[i]+":v1.0.0", kind)
		s.waitUntil(t, "the package is indexed", func() bool { return s.indexed(t) == i+1 })
		if !s.CurrentIndexIsChecked(t) {
			t.Errorf("after %d packages, the first reader waits", i+1)
		}
	}
	first := s
	s.stop()
	s = start(t, func(o *registry.Options) { o.Dir = first.dir })
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	if !s.CurrentIndexIsChecked(t) {
		t.Error("after a restart, the first reader waits")
	}
}

// TestAServerServesOtherContentInTheRepositoryOfTheIndex pushes a package to the repository with the name of that of an
// index.
func TestAServerServesOtherContentInTheRepositoryOfTheIndex(t *testing.T) {
	address := startRegistry(t)
	s := start(t, func(o *registry.Options) {
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: indexRepositories}
	})
	backend := remote.New(remote.Options{})
	t.Cleanup(backend.Close)
	if _, err := backend.Push(
		t.Context(), oci.MustParseReference(address+"/index:v1.0.0"), build(t, packageYAML("provider-boats", "Boat")),
	); err != nil {
		t.Fatal(err)
	}
	a, err := s.client(t, "").Artifact(t.Context(), oci.MustParseReference(host+"/index:v1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	err = oci.Walk(t.Context(), a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, _ []byte) error {
		if got := s.do(t, http.MethodGet, "/v2/index/blobs/"+d.Digest.String(), "", nil).StatusCode; d.Digest != a.Root().
			Digest && got != http.StatusOK {
			t.Errorf("the blob %s: %d", d.Digest, got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestALookupOfABlobReadsNoStateTwice asks for blobs that do not exist, in front of a registry that keeps many former
// states, with their signatures.
func TestALookupOfABlobReadsNoStateTwice(t *testing.T) {
	images := localregistry.New(t)
	var requests atomic.Int64
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			requests.Add(1)
		}
		images.ServeHTTP(w, r)
	})).URL, "http://")
	backend := remote.New(remote.Options{})
	t.Cleanup(backend.Close)
	index := oci.MustParseReference(address + "/index:main")
	signer, _ := indexkey.New(t)
	var replaced indexer.Replaced
	var configs []oci.Digest
	for i := range int64(100) {
		p := indexer.Publishing{
			Catalog: catalog.Catalog{Config: catalog.Config{Name: host}}, Created: time.Unix(1e9+i, 0), Replaced: replaced,
		}
		image, _, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		replaced = indexer.Replaced{Sequence: i + 1, Digest: image.Manifest.Digest}
		if err := signer.Push(t.Context(), backend, index, replaced.Digest); err != nil {
			t.Fatal(err)
		}
		if err := indexer.Publish(t.Context(), backend, index, &image, nil); err != nil {
			t.Fatal(err)
		}
		configs = append(configs, image.Manifest.Config.Digest)
	}
	now := newClock()
	s := start(t, func(o *registry.Options) {
		o.Now = now.read
		o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: indexRepositories}
	})
	s.waitUntil(t, "the index is ready", func() bool { return s.Site().Healthy() == nil })
	lookup := func() int64 {
		t.Helper()
		now.add(time.Minute)
		before := requests.Load()
		if got := s.do(t, http.MethodGet, "/v2/index/blobs/"+oci.DigestOf([]byte("absent")).String(), "", nil).
			StatusCode; got != http.StatusUnauthorized {
			t.Errorf("an absent blob: %d", got)
		}
		return requests.Load() - before
	}
	if got, most := lookup(), int64(33*7); got > most {
		t.Errorf("the first lookup takes %d requests, more than %d", got, most)
	}
	if got, most := lookup(), int64(33+5); got > most {
		t.Errorf("another lookup takes %d requests, more than %d", got, most)
	}
	slices.Reverse(configs)
	for i, want := range map[int]bool{0: true, 32: true, 33: false} {
		if _, got := s.content(t, "/v2/index/blobs/"+configs[i].String(), ""); got != want {
			t.Errorf("the state %d before the current one is served: %t", i, got)
		}
	}
}
