package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestGarbageCollectionKeepsWhatClientsPushAndPull pushes and pulls versions while the garbage collection runs all the
// time.
func TestGarbageCollectionKeepsWhatClientsPushAndPull(t *testing.T) {
	if testing.Short() {
		t.Skip("pushes many packages")
	}
	s := start(t, func(o *registry.Options) {
		o.GarbageCollection = registry.GarbageCollection{Every: 5 * time.Millisecond, Grace: time.Minute}
	})
	const writers, versions = 4, 10
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range versions {
				reference := fmt.Sprintf("acme/provider-%d:v1.0.%d", w%2, w*versions+i)
				if err := s.push(t, s.admin, reference, fmt.Sprintf("Kind%d", w*versions+i)); err != nil {
					t.Errorf("push %s: %v", reference, err)
				}
			}
		})
	}
	group.Wait()
	client := s.client(t, s.admin)
	for w := range writers {
		for i := range versions {
			ref := oci.MustParseReference(fmt.Sprintf("%s/acme/provider-%d:v1.0.%d", host, w%2, w*versions+i))
			a, err := client.Artifact(t.Context(), ref)
			if err != nil {
				t.Errorf("%s: %v", ref, err)
				continue
			}
			err = oci.Walk(t.Context(), a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, _ []byte) error {
				resp := s.do(t, http.MethodHead, "/v2/"+ref.Repository+"/blobs/"+d.Digest.String(), s.admin, nil)
				if resp.StatusCode != http.StatusOK {
					return fmt.Errorf("%s: %d", d.Digest, resp.StatusCode)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", ref, err)
			}
		}
	}
}

// TestAStopKeepsNewContent stops a server between the uploads of the first push to a repository, and starts it again.
func TestAStopKeepsNewContent(t *testing.T) {
	first := start(t, nil)
	upload := func(repository string) (blob string) {
		t.Helper()
		digest := oci.DigestOf([]byte(repository)).String()
		begun := first.do(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/", first.admin, nil).Header.Get("Location")
		if resp := first.do(t, http.MethodPut, begun+"&digest="+
			digest, first.admin, strings.NewReader(repository)); resp.StatusCode != http.StatusCreated {
			t.Fatalf("upload to %s: %d", repository, resp.StatusCode)
		}
		return "/v2/" + repository + "/blobs/" + digest
	}
	started, abandoned := upload("acme/started"), upload("acme/abandoned")
	first.mustPush(t, "acme/abandoned/provider-boats:v1.0.0", "Boat")
	first.stop()
	again := func() *server {
		s := start(t, func(o *registry.Options) { o.Dir = first.dir })
		s.admin = first.admin
		return s
	}
	second := again()
	for _, blob := range []string{started, abandoned} {
		if got := second.do(t, http.MethodHead, blob, second.admin, nil).StatusCode; got != http.StatusOK {
			t.Errorf("%s after a restart: %d", blob, got)
		}
	}
	second.stop()
	old := time.Now().Add(-2 * time.Hour)
	file := filepath.Join(
		first.dir, "registry", "acme", "abandoned", "blobs", "sha256", oci.DigestOf([]byte("acme/abandoned")).Hex(),
	)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	third := again()
	resp := third.do(t, http.MethodGet, "/v2/_catalog", third.admin, nil)
	var list struct{ Repositories []string }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	list.Repositories = slices.DeleteFunc(list.Repositories, func(name string) bool { return name == "index" })
	if want := []string{"acme/abandoned/provider-boats", "acme/started"}; !slices.Equal(list.Repositories, want) {
		t.Errorf("the repositories are %q, want %q", list.Repositories, want)
	}
	third.mustPush(t, "acme/abandoned:v1.0.0", "Boat")
}

// TestServerClosesAfterAnUploadThatCreatedNothing closes a server after requests for repositories that do not exist.
func TestServerClosesAfterAnUploadThatCreatedNothing(t *testing.T) {
	s := start(t, nil)
	if got := s.do(t, http.MethodPut, "/v2/acme/nothing/manifests/v1.0.0", s.admin, strings.NewReader("{")).
		StatusCode; got != http.StatusBadRequest {
		t.Errorf("a malformed manifest: %d", got)
	}
	if got := s.do(t, http.MethodDelete, "/v2/acme/absent/manifests/v1.0.0", s.admin, nil).
		StatusCode; got != http.StatusNotFound {
		t.Errorf("deletion in an absent repository: %d", got)
	}
	s.stop() // It fails the test if the server does not close.
}

func TestOldVersionsAndDependenciesAreNotDeleted(t *testing.T) {
	now := newClock()
	s := start(t, func(o *registry.Options) { o.Now = now.read })
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/provider-rafts:v1.0.0", "Raft")
	dependent := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: fleet}\nspec:\n  dependsOn:\n  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: " +
		host + "/acme/provider-boats, version: '>=v1.0.0'}\n"
	if _, err := s.client(t, s.admin).
		Push(t.Context(), oci.MustParseReference(host+"/other/fleet:v1.0.0"), build(t, []byte(dependent))); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "all packages are indexed", func() bool {
		return len(s.found(t, "", "fleet")) == 1 &&
			len(s.found(t, "", "kind:Raft")) == 1
	})
	owner := s.token(t, "alice", []string{"acme/*"}, access.Actions()...)
	late, _, err := tokens.Open(s.dir, nil).
		Create("alice", "", access.Scope{Repositories: []string{"acme/*"}, Actions: access.Actions()}, 100*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	target := func(name string) string { return "/v2/acme/" + name + "/manifests/v1.0.0" }
	if got := s.do(t, http.MethodDelete, target("provider-boats"), owner, nil).StatusCode; got != http.StatusConflict {
		t.Errorf("a version on which another package depends: %d", got)
	}
	now.add(73 * time.Hour)
	if got := s.do(t, http.MethodDelete, target("provider-rafts"), late, nil).StatusCode; got != http.StatusConflict {
		t.Errorf("a version of 73 hours: %d", got)
	}
	now.add(-72*time.Hour - 30*time.Minute)
	if got := s.do(t, http.MethodDelete, target("provider-rafts"), owner, nil).StatusCode; got != http.StatusAccepted {
		t.Errorf("a version of one hour: %d", got)
	}
}
