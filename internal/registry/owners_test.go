package registry_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// An API group belongs to its owner before its first package, so that the first package of another publisher is not
// selected. The owner is not published if it is a private part of the registry without public packages.
func TestTheOwnerOfAGroupIsPublishedWithoutPackages(t *testing.T) {
	s := start(t, configured(t, policy+
		"groups: [{group: a.example.org, owner: later}, {group: b.example.org, owner: evil}, {group: s.example.org, owner: acme/secret}]\n"))
	s.mustPush(t, "evil/provider-boats:v1.0.0", "Boat")
	want := []catalog.GroupOwner{{Group: "a.example.org", Owner: host + "/later"}, {
		Group: "b.example.org", Owner: host + "/evil",
	}}
	s.waitUntil(t, "the index has the owners", func() bool {
		var manifest struct{ Config struct{ Digest string } }
		if json.NewDecoder(s.do(t, http.MethodGet, "/v2/index/manifests/main", "", nil).Body).Decode(&manifest) != nil {
			return false
		}
		var config catalog.Config
		err := json.NewDecoder(s.do(t, http.MethodGet, "/v2/index/blobs/"+manifest.Config.Digest, "", nil).Body).
			Decode(&config)
		return err == nil && config.Counts.Packages == 1 && slices.Equal(config.Owners, want)
	})
}

// TestAnOwnerThatBecomesPrivateLeavesThePublishedIndex checks that former states do not name it either. An owner with a
// public package remains.
func TestAnOwnerThatBecomesPrivateLeavesThePublishedIndex(t *testing.T) {
	const groups = "groups: [{group: boats.example.org, owner: fleet}, {group: plans.example.org, owner: planned/hidden}]\n"
	s := start(t, configured(t, policy+groups))
	s.mustPush(t, "fleet/public/provider-boats:v1.0.0", "Boat")
	owners := func(s *server) (found []string) {
		for _, state := range s.states(t, "") {
			raw, ok := s.content(t, state.blobs[0], "")
			var config catalog.Config
			if !ok || json.Unmarshal(raw, &config) != nil {
				t.Fatalf("the configuration of a state is not served: %s", raw)
			}
			for _, owner := range config.Owners {
				found = append(found, owner.Owner)
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	both := []string{host + "/fleet", host + "/planned/hidden"}
	s.waitUntil(t, "the index has the package", func() bool {
		states := s.states(t, "")
		return len(states) > 0 && len(states[0].names) > 0 && slices.Equal(owners(s), both)
	})
	first := s
	s.stop()
	private := "- {prefix: planned, private: true}\n- {prefix: fleet, private: true}\n- {prefix: fleet/public}\n"
	s = start(t, func(o *registry.Options) {
		o.Dir = first.dir
		configured(t, policy+private+groups)(o)
	})
	if got := owners(s); len(got) > 0 && !slices.Equal(got, both[:1]) {
		t.Errorf("before the next state is published, a client finds the owners %q", got)
	}
	s.waitUntil(t, "the next state is published", func() bool { return slices.Equal(owners(s), both[:1]) })
}

// The author of a package states its time, so the earliest package is not the owner of an API group. A configured owner
// is, also before its first package.
func TestTheOwnerOfAGroupIsNotClaimed(t *testing.T) {
	s := start(t, nil)
	const group = "provider-boats.example.org"
	owner := func() string {
		return s.Site().ViewOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+
			"/", nil)).GroupOwner(group).Publisher
	}
	s.mustPush(t, "zulu/provider-boats:v1.0.0", "Boat")
	s.waitUntil(t, "the only package is the owner", func() bool { return owner() == host+"/zulu/provider-boats" })
	s.mustPush(t, "evil/provider-boats:v1.0.0", "Boat")
	s.waitUntil(t, "the group has no owner", func() bool { return owner() == "" })

	planned := start(t, configured(t, policy+"groups: [{group: "+group+", owner: zulu}]\n"))
	planned.mustPush(t, "evil/provider-boats:v1.0.0", "Boat")
	s = planned
	s.waitUntil(t, "the package is indexed", func() bool { return s.indexed(t) > 0 })
	if got := owner(); got != "zulu" {
		t.Errorf("the owner is %q", got)
	}
}
