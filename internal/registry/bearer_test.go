package registry_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// bearer exchanges a token, or no credentials, for a bearer token with a scope.
func (s *server) bearer(t testing.TB, token, scope string) string {
	t.Helper()
	target := "/token?service=" + host
	if scope != "" {
		target += "&scope=" + url.QueryEscape(scope)
	}
	resp := s.do(t, http.MethodGet, target, token, nil)
	var got struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Token == "" {
		t.Fatalf("no bearer token: %d, %v", resp.StatusCode, err)
	}
	return got.Token
}

// A bearer token is limited to the scope and the time for which it was issued, and ends with its token: no other one is
// issued for it, neither as a password nor as a bearer token.
func TestABearerTokenIsNotExchangedForAnother(t *testing.T) {
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	alice := s.token(t, "alice", []string{"acme/*"}, access.Publish, access.Create)
	bearer := s.bearer(t, alice, "repository:acme/provider-rafts:pull")
	target := "/token?scope=" + url.QueryEscape("repository:acme/provider-boats:pull,push")
	if resp := s.do(t, http.MethodGet, target, bearer, nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the bearer token: %d", resp.StatusCode)
	}
	if resp := s.basic(t, target, bearer); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the bearer token as a password: %d", resp.StatusCode)
	}
	if resp := s.basic(t, target, alice); resp.StatusCode != http.StatusOK {
		t.Errorf("with the token as a password: %d", resp.StatusCode)
	}
	if resp := s.basic(t, "/v2/acme/provider-boats/tags/list", bearer); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request with the bearer token as a password: %d", resp.StatusCode)
	}
	store := tokens.Open(s.dir, nil)
	list, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range list {
		if token.User == "alice" {
			if err := store.Revoke(token.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if resp := s.do(
		t, http.MethodGet, "/v2/acme/provider-rafts/tags/list", bearer, nil,
	); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the revocation: %d", resp.StatusCode)
	}
}

// The bearer tokens of the password of an exchange end with the password.
func TestABearerTokenEndsWithThePassword(t *testing.T) {
	i, now := startIssuer(t), newClock()
	s := start(t, func(o *registry.Options) { o.Now = now.read })
	s.configure(t, policy+"issuers:\n- url: "+i.url+"\n  audience: "+host+
		"\n  identities:\n  - claims: {sub: ci}\n    repository: acme/provider-boats\n")
	token := i.token(t, map[string]any{
		"iss": i.url, "aud": host, "sub": "ci", "exp": now.read().Add(time.Hour).Unix(), "iat": now.read().Unix(),
	})
	s.waitPolicy(t, token)
	_, password, _ := s.exchange(t, token)
	now.add(14 * time.Minute)
	bearer := s.bearer(t, password, "repository:acme/provider-boats:pull,push")
	upload := func() int {
		return s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/", bearer, nil).StatusCode
	}
	if got := upload(); got != http.StatusAccepted {
		t.Errorf("after 14 minutes: %d", got)
	}
	now.add(2 * time.Minute)
	if got := upload(); got != http.StatusUnauthorized {
		t.Errorf("after 16 minutes: %d", got)
	}
}

// basic sends a request with a password.
func (s *server) basic(t testing.TB, target, password string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+target, nil)
	r.SetBasicAuth("any", password)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

// A client that exchanges its token mounts the content that it has pushed to another repository, instead of an upload.
func TestClientsMountWithBearerTokens(t *testing.T) {
	s := start(t, nil)
	var uploads int
	c := remote.New(remote.Options{
		Transport: direct{handler: s}, Attempts: 1, Hosts: map[string]remote.HostOptions{host: {PlainHTTP: true}},
		Keychain: password(s.admin),
		Progress: func(tr remote.Transfer) {
			if tr.Upload && tr.Done == tr.Total {
				uploads++
			}
		},
	})
	t.Cleanup(c.Close)
	content := build(t, packageYAML("provider-mounts", "Mount"))
	for i, name := range []string{"acme/provider-mounts:v1.0.0", "acme/provider-mounted:v1.0.0"} {
		if _, err := c.Push(t.Context(), oci.MustParseReference(host+"/"+name), content); err != nil {
			t.Fatal(err)
		}
		if i == 0 && uploads == 0 || i == 1 && uploads != 0 {
			t.Errorf("the push of %s uploads %d blobs", name, uploads)
		}
		uploads = 0
	}
}
