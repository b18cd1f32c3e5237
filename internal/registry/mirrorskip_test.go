package registry_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// hosts sends requests to the server of their host, and counts them.
type hosts struct {
	servers map[string]direct
	count   atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.count.Add(1)
	return h.servers[r.URL.Host].RoundTrip(r)
}

// mirrorOptions returns the options of a mirror with records from one server to another one with the host target, and
// the transport of its requests.
func mirrorOptions(t *testing.T, source, copies *server, target string) (mirror.Options, *hosts) {
	t.Helper()
	records, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	requests := &hosts{servers: map[string]direct{host: {source, source.admin}, target: {copies, copies.admin}}}
	o := mirror.Options{
		Client: remote.New(remote.Options{Transport: requests, Attempts: 1}), Target: target, Records: records,
	}
	t.Cleanup(o.Client.Close)
	return o, requests
}

// TestAMirrorComparesOnlyWhatHasChanged counts the requests of runs between two servers.
func TestAMirrorComparesOnlyWhatHasChanged(t *testing.T) {
	const target = "mirror.example.org"
	source := start(t, nil)
	copies := start(t, func(o *registry.Options) { o.Host = target })
	client := newReader(t, source)
	const versions = 12
	for i := range versions {
		source.mustPush(t, fmt.Sprintf("acme/provider-boats:v1.%d.0", i), fmt.Sprintf("Boat%d", i))
	}
	source.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
	wanted := []string{fmt.Sprintf("Boat%d", versions-1), "Raft"}
	source.waitUntil(t, "the packages are published", func() bool { return slices.Equal(client.kinds(t), wanted) })
	o, requests := mirrorOptions(t, source, copies, target)
	run := func(what string, wantVersions, wantArtifacts, mostRequests int) {
		t.Helper()
		current := client.catalog(t)
		requests.count.Store(0)
		got, err := mirror.Run(t.Context(), o, &current)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got.Versions != wantVersions || got.Artifacts != wantArtifacts {
			t.Errorf(
				"%s copies %d versions and %d artifacts, want %d and %d", what, got.Versions, got.Artifacts, wantVersions,
				wantArtifacts,
			)
		}
		if n := int(requests.count.Load()); n > mostRequests {
			t.Errorf("%s costs %d requests, want at most %d", what, n, mostRequests)
		}
	}
	const all, each = 1000, 2
	run("the first run", versions+1, 0, all)
	run("a run that compares all versions", 0, 0, all)
	run("a run without changes", 0, 0, 2*each)

	boats := oci.MustParseReference(host + "/acme/provider-boats:v1.3.0")
	if _, err := packagestatus.Write(t.Context(), source.client(t, source.admin), boats, catalog.Status{
		State: catalog.Yanked,
	}); err != nil {
		t.Fatal(err)
	}
	run("a run after a new referrer", 0, 1, all)
	source.waitUntil(t, "the status is published", func() bool {
		current := client.catalog(t)
		return slices.ContainsFunc(
			current.History(host+"/acme/provider-boats").Versions, func(v catalog.Version) bool { return v.Status != nil },
		)
	})
	run("a run that compares the versions of a package", 0, 0, all)
	run("a run without changes after a referrer", 0, 0, 2*each)

	if got := copies.do(t, http.MethodDelete, "/v2/acme/provider-rafts/manifests/v1.0.0", copies.admin, nil).
		StatusCode; got != http.StatusAccepted {
		t.Fatalf("deletion in the mirror: %d", got)
	}
	run("a run after a loss in the mirror", 1, 0, 2*each+11)

	for _, kept := range must(o.Records.Records(t.Context(), "mirror"))(t) {
		kept.Data = []byte("{")
		if err := o.Records.PutRecord(kept); err != nil {
			t.Fatal(err)
		}
	}
	run("a run with damaged records", 0, 0, all)
	run("a run after that", 0, 0, 2*each)
}

// TestAMirrorThatVerifies damages each file of a version in a mirror. A run that verifies copies the version again,
// also if records state that the repository has not changed, and fails if the registry keeps the damage.
func TestAMirrorThatVerifies(t *testing.T) {
	const target = "mirror.example.org"
	source, copies, reader := startWithMirror(t, target)
	ref := oci.MustParseReference(host + "/acme/provider-boats:v1.0.0")
	if _, err := packagestatus.Write(t.Context(), source.client(t, source.admin), ref, catalog.Status{
		State: catalog.Deprecated,
	}); err != nil {
		t.Fatal(err)
	}
	o, requests := mirrorOptions(t, source, copies, target)
	run := func(verify bool) (mirror.Result, error) {
		current := reader.catalog(t)
		o.Verify = verify
		return mirror.Run(t.Context(), o, &current)
	}
	for range 2 {
		if _, err := run(false); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(copies.dir, "registry", "acme", "provider-boats", "blobs", "sha256")
	contents, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range contents {
		path := filepath.Join(dir, content.Name())
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(original), `"mediaType":"`+string(oci.MediaTypeOCIIndex)) {
			continue // A list of referrers, which the server has in memory.
		}
		for name, damage := range map[string]func() error{
			"missing":   func() error { return os.Remove(path) },
			"truncated": func() error { return os.Truncate(path, int64(len(original)/2)) },
			"flipped": func() error {
				flipped := slices.Clone(original)
				flipped[len(flipped)/2] ^= 1
				return os.WriteFile(path, flipped, 0o600)
			},
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			got, err := run(true)
			if err != nil || got.Versions+got.Artifacts == 0 {
				t.Errorf("%s is %s: copied %+v, %v", content.Name(), name, got, err)
			}
			if repaired, err := os.ReadFile(path); err != nil || !slices.Equal(repaired, original) {
				t.Errorf("%s is %s after the run: %v", content.Name(), name, err)
			}
			if got, err := run(true); err != nil || got.Versions+got.Artifacts != 0 {
				t.Errorf("a run after that: copied %+v, %v", got, err)
			}
		}
	}
	keeping := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = io.WriteString(w, "damaged")
			return
		}
		copies.ServeHTTP(w, r)
	})
	requests.servers[target] = direct{keeping, copies.admin}
	if _, err := run(true); !errors.Is(err, oci.ErrDigestMismatch) {
		t.Errorf("a registry that keeps damaged content: %v", err)
	}
}

// startWithMirror starts a server with the published package acme/provider-boats, an empty one with the name target,
// and returns both with a client of the index of the first.
func startWithMirror(t *testing.T, target string) (source, copies *server, client *reader) {
	t.Helper()
	source = start(t, nil)
	copies = start(t, func(o *registry.Options) { o.Host = target })
	client = newReader(t, source)
	source.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	source.waitUntil(t, "the package is published", func() bool { return slices.Equal(client.kinds(t), []string{"Boat"}) })
	return source, copies, client
}

// must returns a function that ends the test if there is an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestAServerKeepsItsOwnIndex mirrors to a server with and without a prefix.
func TestAServerKeepsItsOwnIndex(t *testing.T) {
	const target = "mirror.example.org"
	source, copies, reader := startWithMirror(t, target)
	copies.waitUntil(t, "the mirror has an index", func() bool { return copies.Site().Healthy() == nil })
	o, _ := mirrorOptions(t, source, copies, target)
	index := oci.MustParseReference(host + "/index:main")
	state := must(reader.client.Open(t.Context(), index))(t)
	if to, isOwn, err := mirror.CopyIndex(t.Context(), o, index, state); err != nil || !isOwn ||
		to.String() != target+"/index:main" {
		t.Errorf("without a prefix: %s, own: %v, %v", to, isOwn, err)
	}
	o.Target += "/packages"
	if to, isOwn, err := mirror.CopyIndex(t.Context(), o, index, state); err != nil || isOwn ||
		to.String() != target+"/packages/index:main" {
		t.Errorf("with a prefix: %s, own: %v, %v", to, isOwn, err)
	}
	copied := must(o.Client.Resolve(t.Context(), oci.MustParseReference(target+"/packages/index:main")))(t)
	if copied.Digest != state.Manifest().Digest {
		t.Errorf("the mirror has the state %s", copied.Digest.Short())
	}
}

// TestAMirrorRecordsNoRepositoryThatItCannotRead has a version in the index that the source does not have: each run
// reports it.
func TestAMirrorRecordsNoRepositoryThatItCannotRead(t *testing.T) {
	const target = "mirror.example.org"
	source, copies, reader := startWithMirror(t, target)
	o, _ := mirrorOptions(t, source, copies, target)
	current := reader.catalog(t)
	h := current.History(host + "/acme/provider-boats")
	h.Versions = append(h.Versions, catalog.Version{Tag: "v9.0.0", Digest: oci.DigestOf([]byte("absent"))})
	for range 3 {
		if _, err := mirror.Run(t.Context(), o, &current); !errors.Is(err, mirror.ErrUnreadable) ||
			!strings.Contains(err.Error(), "/acme/provider-boats:v9.0.0 (") {
			t.Errorf("%v", err)
		}
	}
}
