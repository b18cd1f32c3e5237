package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TestGarbageCollectionKeepsWhatClientsPushAndPull pushes and pulls versions while the garbage collection runs all the time.
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

// TestServerClosesAfterAnUploadThatCreatedNothing closes a server after requests for repositories that do not exist.
func TestServerClosesAfterAnUploadThatCreatedNothing(t *testing.T) {
	s := start(t, nil)
	if got := s.do(t, http.MethodPut, "/v2/acme/nothing/manifests/v1.0.0", s.admin, strings.NewReader("{")).StatusCode; got != http.StatusBadRequest {
		t.Errorf("a malformed manifest: %d", got)
	}
	if got := s.do(t, http.MethodDelete, "/v2/acme/absent/manifests/v1.0.0", s.admin, nil).StatusCode; got != http.StatusNotFound {
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
	if _, err := s.client(t, s.admin).Push(t.Context(), oci.MustParseReference(host+"/other/fleet:v1.0.0"), build(t, []byte(dependent))); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(t, "all packages are indexed", func() bool { return len(s.found(t, "", "fleet")) == 1 && len(s.found(t, "", "kind:Raft")) == 1 })
	owner := s.token(t, "alice", []string{"acme/*"}, access.Actions()...)
	late, _, err := tokens.Open(s.dir, nil).Create("alice", "", access.Scope{Repositories: []string{"acme/*"}, Actions: access.Actions()}, 100*time.Hour)
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
