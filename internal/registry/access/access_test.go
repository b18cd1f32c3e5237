package access_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

const document = `
administrators: [root]
rules:
- prefix: acme
  owners: [alice, group:ships]
- prefix: acme/secret
  private: true
  owners: [alice]
  readers: [bob]
- prefix: acme/secret/open
groups:
- group: acme.example.org
  owner: acme
issuers:
- url: https://ci.example.org
  audience: registry.example.org
  userClaim: email
  groupsClaim: groups
  identities:
  - claims: {repository: acme/boats}
    repository: acme/boats
`

func policy(t testing.TB) *access.Policy {
	t.Helper()
	p, err := access.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheRuleWithTheLongestPrefixDecides(t *testing.T) {
	p := policy(t)
	anonymous, alice, bob, root := access.Anonymous(), access.Subject{User: "alice"}, access.Subject{User: "bob"},
		access.Subject{User: "root"}
	sailor := access.Subject{User: "carol", Groups: []string{"ships"}}
	scoped := alice.Limited([]access.Scope{{Repositories: []string{"acme/boats"}, Actions: []access.Action{
		access.Publish,
	}}})
	ci := access.Subject{Grants: []access.Scope{{Repositories: []string{"acme/boats"}, Actions: []access.Action{
		access.Publish, access.Create,
	}}}}
	for _, c := range []struct {
		subject    access.Subject
		repository string
		action     access.Action
		want       bool
	}{
		{anonymous, "other/a", access.Read, true},
		{anonymous, "acme/boats", access.Read, true},
		{anonymous, "acme/boats", access.Publish, false},
		{anonymous, "acme/secret", access.Read, false},
		{anonymous, "acme/secret/x", access.Read, false},
		{anonymous, "acme/secretary", access.Read, true},
		{anonymous, "acme/secret/open/x", access.Read, true},
		{anonymous, "acme/secret/../boats", access.Read, false},
		{anonymous, "", access.Read, false},
		{bob, "acme/secret/x", access.Read, true},
		{bob, "acme/secret/x", access.Publish, false},
		{alice, "acme/secret/x", access.Delete, true},
		{alice, "acme/secret/open/x", access.Publish, false},
		{alice, "other/a", access.Create, false},
		{sailor, "acme/boats", access.Yank, true},
		{sailor, "acme/secret", access.Read, false},
		{access.Subject{User: "group:ships"}, "acme/boats", access.Publish, false},
		{root, "any/thing", access.Delete, true},
		{scoped, "acme/boats", access.Publish, true},
		{scoped, "acme/boats", access.Read, true},
		{scoped, "acme/boats", access.Create, false},
		{scoped, "acme/rafts", access.Publish, false},
		{scoped, "acme/secret", access.Read, false},
		{scoped, "acme/rafts", access.Read, true},
		{scoped, "index", access.Read, true},
		{ci, "acme/boats", access.Create, true},
		{ci, "acme/boats", access.Delete, false},
		{ci, "acme/rafts", access.Publish, false},
	} {
		if got := p.May(c.subject, c.repository, c.action); got != c.want {
			t.Errorf("May(%+v, %q, %s) = %v", c.subject, c.repository, c.action, got)
		}
	}
}

func TestMisspelledRulesAreErrors(t *testing.T) {
	for name, document := range map[string]string{
		"unknown field":        "rules: [{prefix: a, privat: true}]",
		"upper case prefix":    "rules: [{prefix: Acme}]",
		"prefix with slash":    "rules: [{prefix: acme/, private: true}]",
		"two rules":            "rules: [{prefix: a}, {prefix: a, private: true}]",
		"empty owner":          `rules: [{prefix: a, owners: [""]}]`,
		"no audience":          "issuers: [{url: 'https://a'}]",
		"no claims":            "issuers: [{url: 'https://a', audience: b, identities: [{repository: a}]}]",
		"unknown action":       "issuers: [{url: 'https://a', audience: b, identities: [{repository: a, claims: {b: c}, actions: [rule]}]}]",
		"two owners":           "groups: [{group: a.org, owner: a}, {group: a.org, owner: b}]",
		"group in capitals":    "groups: [{group: A.org, owner: a}]",
		"group with a dot":     "groups: [{group: a.org., owner: a}]",
		"all groups":           "groups: [{group: '*.org', owner: a}]",
		"users of two issuers": "issuers: [{url: 'https://a', audience: b, userClaim: sub}, {url: 'https://c', audience: b, userClaim: email}]",
		"one without a name":   "issuers: [{url: 'https://a', audience: b, userClaim: sub}, {name: c, url: 'https://c', audience: b, userClaim: sub}]",
		"one with a name":      "issuers: [{name: a, url: 'https://a', audience: b, userClaim: sub}, {url: 'https://c', audience: b, userClaim: sub}]",
		"two with one name":    "issuers: [{name: a, url: 'https://a', audience: b, userClaim: sub}, {name: a, url: 'https://c', audience: b, userClaim: sub}]",
		"users of two claims":  "issuers: [{url: 'https://a', audience: b, userClaim: sub}, {url: 'https://a', audience: c, userClaim: email}]",
		"name with a slash":    "issuers: [{name: a/b, url: 'https://a', audience: b, userClaim: sub}]",
		"issuer without TLS":   "issuers: [{url: 'http://a', audience: b}]",
		"no YAML":              "{",
	} {
		if _, err := access.Parse([]byte(document)); !errors.Is(err, access.ErrPolicy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUsersOfIssuersHaveDifferentNames has issuers that name a user and a group alike.
func TestUsersOfIssuersHaveDifferentNames(t *testing.T) {
	p, err := access.Parse([]byte(`
rules:
- {prefix: acme, owners: ["oidc:corp/alice", "group:corp/ships"]}
issuers:
- {name: corp, url: 'https://a', audience: b, userClaim: sub, groupsClaim: groups}
- {name: other, url: 'http://127.0.0.1:1', audience: b, userClaim: sub, groupsClaim: groups}
- {url: 'https://ci', audience: b, identities: [{claims: {sub: x}, repository: acme/boats}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		issuer int
		claims map[string]any
		want   bool
	}{
		"the user":                    {0, map[string]any{"sub": "alice"}, true},
		"a member of the group":       {0, map[string]any{"sub": "bob", "groups": []any{"ships"}}, true},
		"the user of another":         {1, map[string]any{"sub": "alice"}, false},
		"a qualified user of another": {1, map[string]any{"sub": "corp/alice"}, false},
		"a member of another's group": {1, map[string]any{"sub": "bob", "groups": []any{"ships", "corp/ships"}}, false},
	} {
		s, ok := p.Issuers[c.issuer].Subject(c.claims)
		if got := p.May(s, "acme/boats", access.Publish); !ok || got != c.want || !p.Accepts(s) {
			t.Errorf("%s: %+v: %v", name, s, got)
		}
	}
}

// TestLimitsNeverAllowMore checks that a limit never adds a permission, and hides nothing that is public.
func TestLimitsNeverAllowMore(t *testing.T) {
	p := policy(t)
	users := rapid.SampledFrom([]string{"", "alice", "bob", "root"})
	names := rapid.SampledFrom([]string{
		"acme", "acme/boats", "acme/secret", "acme/secret/x", "other", "acme/secret/open/y",
	})
	patterns := rapid.SampledFrom([]string{"*", "acme/*", "acme/boats", "acme/secret/*"})
	actions := rapid.SampledFrom(access.Actions())
	rapid.Check(t, func(t *rapid.T) {
		s := access.Subject{User: users.Draw(t, "user")}
		scope := access.Scope{
			Repositories: rapid.SliceOfN(patterns, 1, 3).Draw(t, "repositories"),
			Actions:      rapid.SliceOfN(actions, 1, 3).Draw(t, "actions"),
		}
		repository, action := names.Draw(t, "repository"), actions.Draw(t, "action")
		if p.May(s.Limited([]access.Scope{scope}), repository, action) && !p.May(s, repository, action) {
			t.Fatalf("the limit %+v allows %s on %s", scope, action, repository)
		}
		if p.May(access.Anonymous(), repository, access.Read) &&
			!p.May(s.Limited([]access.Scope{scope}), repository, access.Read) {
			t.Fatalf("the limit %+v hides %s, which is public", scope, repository)
		}
	})
}

// TestPrivateRepositoriesAreNeverInThePublicPartition checks that the partition agrees with the decision for anonymous
// clients.
func TestPrivateRepositoriesAreNeverInThePublicPartition(t *testing.T) {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4)
	name := func(t *rapid.T, label string) string {
		name := ""
		for i, part := range parts.Draw(t, label) {
			if i > 0 {
				name += "/"
			}
			name += part
		}
		return name
	}
	rapid.Check(t, func(t *rapid.T) {
		p := &access.Policy{Private: rapid.Bool().Draw(t, "private")}
		seen := map[string]bool{}
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			r := access.Rule{Prefix: name(t, "prefix"), Private: rapid.Bool().Draw(t, "private rule")}
			if !seen[r.Prefix] {
				p.Rules = append(p.Rules, r)
			}
			seen[r.Prefix] = true
		}
		repository := name(t, "repository")
		if p.May(access.Anonymous(), repository, access.Read) != (p.Partition(repository) == "") {
			t.Fatalf("%s is in partition %q of %+v", repository, p.Partition(repository), p)
		}
	})
}

func TestSimilarAndReservedNamesCannotBeCreated(t *testing.T) {
	p := &access.Policy{ReservedNames: []string{"crossplane"}}
	existing := []string{"acme/provider-boats", "acme/a.b", "acme/v1-2"}
	for name, allowed := range map[string]bool{
		"acme/provider-boats": true, "acme/provider_boats": false, "acme/provider__boats": false,
		"acme/provider--boats": false,
		"acme/a-b":             false, "acme/ab": false, "acme/providerboats": false, "acme/pro-vider-boats": false,
		"acmeprovider/boats": true,
		"acme/v12":           true, "acme/v1.2": false, "acme/v-1-2": false, "acme/v1": true, "v2/x": false, "index": false,
		"crossplane/x": false, "cross-plane": false, "acme/index": true, "in-dex/x": false,
	} {
		if err := p.CheckNew(name, existing); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnIdentityNeedsAllClaims(t *testing.T) {
	issuer := access.Issuer{UserClaim: "email", GroupsClaim: "groups", Identities: []access.Identity{
		{Claims: map[string]string{"repository": "acme/boats", "ref": "main"}, Repository: "acme/boats"},
	}}
	for name, c := range map[string]struct {
		claims map[string]any
		ok     bool
		grants int
		user   string
	}{
		"all claims":       {map[string]any{"repository": "acme/boats", "ref": "main"}, true, 1, ""},
		"another ref":      {map[string]any{"repository": "acme/boats", "ref": "fork"}, false, 0, ""},
		"a list":           {map[string]any{"repository": []any{"acme/boats"}, "ref": "main"}, false, 0, ""},
		"a user":           {map[string]any{"email": "a@example.org", "email_verified": true}, true, 0, "oidc:a@example.org"},
		"unverified email": {map[string]any{"email": "a@example.org", "email_verified": false}, false, 0, ""},
		"verified as text": {
			map[string]any{"email": "a@example.org", "email_verified": "true"}, true, 0, "oidc:a@example.org",
		},
		"false as text": {map[string]any{"email": "a@example.org", "email_verified": "false"}, false, 0, ""},
		"a number":      {map[string]any{"email": "a@example.org", "email_verified": 0.0}, false, 0, ""},
		"null":          {map[string]any{"email": "a@example.org", "email_verified": nil}, false, 0, ""},
		"not stated":    {map[string]any{"email": "a@example.org"}, true, 0, "oidc:a@example.org"},
		"nothing":       {nil, false, 0, ""},
	} {
		s, ok := issuer.Subject(c.claims)
		if ok != c.ok || len(s.Grants) != c.grants || s.User != c.user {
			t.Errorf("%s: %+v, %v", name, s, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(document))
	f.Add([]byte("private: true"))
	f.Fuzz(func(t *testing.T, document []byte) {
		p, err := access.Parse(document)
		if err != nil {
			return
		}
		for _, r := range p.Rules {
			if r.Private && p.May(access.Anonymous(), r.Prefix, access.Read) {
				t.Fatalf("the private repository %s is public", r.Prefix)
			}
		}
	})
}
