package registry_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// An API group belongs to its owner before its first package, so that the first package of another publisher is not selected. The owner is not
// published if it is a private part of the registry without public packages.
func TestTheOwnerOfAGroupIsPublishedWithoutPackages(t *testing.T) {
	s := start(t, func(o *registry.Options) {
		groups := "groups: [{group: a.example.org, owner: later}, {group: b.example.org, owner: evil}, {group: s.example.org, owner: acme/secret}]\n"
		if err := os.WriteFile(filepath.Join(o.Dir, "access.yaml"), []byte(policy+groups), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	s.mustPush(t, "evil/provider-boats:v1.0.0", "Boat")
	want := []catalog.GroupOwner{{Group: "a.example.org", Owner: host + "/later"}, {Group: "b.example.org", Owner: host + "/evil"}}
	s.waitUntil(t, "the index has the owners", func() bool {
		var manifest struct{ Config struct{ Digest string } }
		if json.NewDecoder(s.do(t, http.MethodGet, "/v2/index/manifests/main", "", nil).Body).Decode(&manifest) != nil {
			return false
		}
		var config catalog.Config
		err := json.NewDecoder(s.do(t, http.MethodGet, "/v2/index/blobs/"+manifest.Config.Digest, "", nil).Body).Decode(&config)
		return err == nil && config.Counts.Packages == 1 && slices.Equal(config.Owners, want)
	})
}
