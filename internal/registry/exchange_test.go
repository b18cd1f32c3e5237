package registry_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// issuer is an OIDC issuer on the loopback interface.
type issuer struct {
	url    string
	signer jose.Signer
}

func startIssuer(t testing.TB) *issuer {
	t.Helper()
	const bits = 2048
	return startIssuerWithKey(t, bits)
}

func startIssuerWithKey(t testing.TB, bits int) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{}
	if i.signer, err = jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil,
	); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{ // The client reports a failure.
			"issuer": i.url, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + "/auth",
			"token_endpoint":                        i.url + "/token",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).
			Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	i.url = port.Serve(t, mux).URL
	return i
}

func (i *issuer) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := i.signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// exchange exchanges a token, and returns the status and the bearer token.
func (s *server) exchange(t testing.TB, token string) (status int, bearer string, expires int) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	resp := s.do(t, http.MethodPost, "/api/v1/token", "", strings.NewReader(string(body)))
	var got struct {
		Token   string `json:"token"`
		Expires int    `json:"expires_in"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&got) // A refusal has no token.
	return resp.StatusCode, got.Token, got.Expires
}

func TestACIIdentityMayPushToOneRepositoryFor15Minutes(t *testing.T) {
	i := startIssuer(t)
	now := newClock()
	s := start(t, func(o *registry.Options) { o.Now = now.read })
	configuration := policy + "issuers:\n- url: " + i.url + "\n  audience: " + host + "\n  userClaim: email\n" +
		"  identities:\n  - claims: {repository: acme/boats, ref: refs/heads/main}\n    repository: acme/provider-boats\n"
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	claims := func(change map[string]any) map[string]any {
		out := map[string]any{
			"iss": i.url, "aud": host, "sub": "ci", "exp": now.read().Add(time.Minute).Unix(), "iat": now.read().Unix(),
			"repository": "acme/boats", "ref": "refs/heads/main",
		}
		for k, v := range change {
			out[k] = v
		}
		return out
	}
	s.waitPolicy(t, i.token(t, claims(nil)))
	status, bearer, expires := s.exchange(t, i.token(t, claims(nil)))
	if status != http.StatusOK || expires != 15*60 {
		t.Fatalf("got %d, %d seconds", status, expires)
	}
	if err := s.push(t, bearer, "acme/provider-boats:v1.0.0", "Boat"); err != nil {
		t.Error(err)
	}
	for _, reference := range []string{
		"acme/provider-rafts:v1.0.0", "acme/provider-boats/more:v1.0.0", "acme/secret/provider-boats:v1.0.0",
	} {
		if err := s.push(t, bearer, reference, "Boat"); !errors.Is(err, remote.ErrUnauthorized) {
			t.Errorf("%s: %v", reference, err)
		}
	}
	for name, change := range map[string]map[string]any{
		"another audience":   {"aud": "other"},
		"expired":            {"exp": now.read().Add(-time.Minute).Unix()},
		"another repository": {"repository": "evil/boats"},
		"another branch":     {"ref": "refs/pull/1"},
		"another issuer":     {"iss": "https://evil.example.org"},
	} {
		if status, _, _ := s.exchange(t, i.token(t, claims(change))); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, status)
		}
	}
	other := startIssuer(t)
	if status, _, _ := s.exchange(t, other.token(t, claims(nil))); status != http.StatusUnauthorized {
		t.Errorf("a token that another key has signed: %d", status)
	}
	now.add(16 * time.Minute)
	if got := s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/", bearer, nil).
		StatusCode; got != http.StatusUnauthorized {
		t.Errorf("after 16 minutes: %d", got)
	}
}

// The configuration loses an identity, and then the issuer of a user.
func TestTheEndOfAnIssuerEndsItsBearerTokens(t *testing.T) {
	i := startIssuer(t)
	s := start(t, nil)
	s.mustPush(t, "acme/provider-boats:v1.0.0", "Boat")
	s.mustPush(t, "acme/secret/provider-plans:v1.0.0", "Plan")
	const identity = "  identities:\n  - claims: {repository: acme/boats}\n    repository: acme/provider-boats\n"
	rules := strings.Replace(policy, "readers: [bob]", "readers: [\"oidc:bob@example.org\"]", 1)
	users := rules + "issuers:\n- url: " + i.url + "\n  audience: " + host + "\n  userClaim: email\n"
	configure := func(document string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token := func(claim, value string) string {
		return i.token(t, map[string]any{
			"iss": i.url, "aud": host, "sub": "x", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
			claim: value,
		})
	}
	configure(users + identity)
	s.waitPolicy(t, token("repository", "acme/boats"))
	_, ci, _ := s.exchange(t, token("repository", "acme/boats"))
	_, user, _ := s.exchange(t, token("email", "bob@example.org"))
	// Clients exchange the password for a bearer token.
	bearer := s.bearer(t, user, "repository:acme/secret/provider-plans:pull")
	upload := func() int {
		return s.do(t, http.MethodPost, "/v2/acme/provider-boats/blobs/uploads/", ci, nil).StatusCode
	}
	read := func(token string) int {
		return s.do(t, http.MethodGet, "/v2/acme/secret/provider-plans/manifests/v1.0.0", token, nil).StatusCode
	}
	if upload() != http.StatusAccepted || read(user) != http.StatusOK || read(bearer) != http.StatusOK {
		t.Fatalf("before: %d, %d, %d", upload(), read(user), read(bearer))
	}
	configure(users)
	wait.Until(t, deadline, "the identity has no access", func() (string, bool) {
		status := upload()
		return http.StatusText(status), status == http.StatusUnauthorized
	})
	if read(user) != http.StatusOK || read(bearer) != http.StatusOK {
		t.Errorf("the user after the end of an identity: %d, %d", read(user), read(bearer))
	}
	configure(rules)
	for _, secret := range []string{user, bearer} {
		wait.Until(t, deadline, "the user has no access", func() (string, bool) {
			status := read(secret)
			return http.StatusText(status), status == http.StatusUnauthorized
		})
	}
}

// configure writes the configuration of a server.
func (s *server) configure(t testing.TB, document string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnIssuerDoesNotDisturbOthers has issuers whose documents do not come, are too large, or are of another issuer.
func TestAnIssuerDoesNotDisturbOthers(t *testing.T) {
	good := startIssuer(t)
	asked, release := make(chan struct{}), make(chan struct{})
	var keys atomic.Int64
	mux := http.NewServeMux()
	var address string
	document := func(name string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			// The client reports a failure.
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": address + name, "jwks_uri": address + name + "/keys"})
		}
	}
	mux.HandleFunc("/slow/.well-known/openid-configuration", func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	})
	mux.HandleFunc("/large/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(repeated{}, 64<<20)) // The client closes the connection.
	})
	mux.HandleFunc("/other/.well-known/openid-configuration", document("/evil"))
	mux.HandleFunc("/counted/.well-known/openid-configuration", document("/counted"))
	mux.HandleFunc("/counted/keys", func(w http.ResponseWriter, _ *http.Request) {
		keys.Add(1)
		_, _ = io.WriteString(w, `{"keys": []}`) // The client reports a failure.
	})
	address = port.Serve(t, mux).URL
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	s := start(t, nil)
	configuration := policy + "issuers:\n"
	for name, url := range map[string]string{"good": good.url, "slow": address + "/slow", "large": address +
		"/large", "other": address + "/other", "counted": address + "/counted"} {
		configuration += "- {name: " + name + ", url: '" + url + "', audience: " + host + ", userClaim: sub}\n"
	}
	s.configure(t, configuration)
	token := func(issuer string) string {
		return good.token(t, map[string]any{
			"iss": issuer, "aud": host, "sub": "x", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		})
	}
	s.waitPolicy(t, token(good.url))
	for _, name := range []string{"/large", "/other"} {
		if status, _, _ := s.exchange(t, token(address+name)); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", name, status)
		}
	}
	for range 5 {
		if status, _, _ := s.exchange(t, token(address+"/counted")); status != http.StatusUnauthorized {
			t.Errorf("an unknown key: %d", status)
		}
	}
	if keys.Load() != 1 {
		t.Errorf("unknown keys caused %d requests", keys.Load())
	}
	slow := token(address + "/slow")
	ended := make(chan int, 1)
	go func() {
		status, _, _ := s.exchange(t, slow)
		ended <- status
	}()
	<-asked
	if status, _, _ := s.exchange(t, token(good.url)); status != http.StatusOK {
		t.Errorf("while another issuer does not respond: %d", status)
	}
	release <- struct{}{}
	if status := <-ended; status != http.StatusServiceUnavailable {
		t.Errorf("the issuer that does not respond: %d", status)
	}
}

// repeated is an endless document.
type repeated struct{}

func (repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// waitPolicy waits until the server uses a changed policy.
func (s *server) waitPolicy(t testing.TB, token string) {
	t.Helper()
	wait.Until(t, deadline, "the server reads its configuration again", func() (string, bool) {
		status, _, _ := s.exchange(t, token)
		return http.StatusText(status), status == http.StatusOK
	})
}

// A signature of a short RSA key can be forged.
// TestASlowIssuerIsNotAWrongToken ends the time for a request while the issuer sends its keys: the token can be valid.
func TestASlowIssuerIsNotAWrongToken(t *testing.T) {
	i := startIssuer(t)
	ctx, end := context.WithCancel(t.Context())
	finish := make(chan struct{})
	mux := http.NewServeMux()
	slow := port.Serve(t, mux)
	t.Cleanup(func() { close(finish) })
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		// The client reports a failure.
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": slow.URL, "jwks_uri": slow.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(http.ResponseWriter, *http.Request) {
		end()
		<-finish
	})
	s := start(t, configured(t, policy+"issuers:\n- {url: "+slow.URL+", audience: "+host+", userClaim: email}\n"))
	token := i.token(t, map[string]any{"iss": slow.URL, "aud": host, "sub": "x", "exp": time.Now().Add(time.Hour).Unix()})
	w := httptest.NewRecorder()
	s.ServeHTTP(
		w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/token", strings.NewReader(`{"token":"`+token+`"}`)),
	)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestKeysWithoutTLSAreNotRead names keys of an issuer at an address without TLS, in its discovery document and in a
// redirect.
func TestKeysWithoutTLSAreNotRead(t *testing.T) {
	const keys = "http://issuer.example.org/keys"
	i := startIssuer(t)
	for name, redirects := range map[string]bool{"discovery document": false, "redirect": true} {
		mux := http.NewServeMux()
		served := port.Serve(t, mux)
		mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			address := keys
			if redirects {
				address = served.URL + "/keys"
			}
			// The client reports a failure.
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": served.URL, "jwks_uri": address})
		})
		mux.Handle("/keys", http.RedirectHandler(keys, http.StatusFound))
		var requested atomic.Bool
		s := start(t, func(o *registry.Options) {
			configured(t, policy+"issuers:\n- {url: "+served.URL+", audience: "+host+", userClaim: email}\n")(o)
			o.Issuers = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Hostname() == "issuer.example.org" {
					requested.Store(true)
					return nil, errors.New("unexpected request")
				}
				return http.DefaultTransport.RoundTrip(r)
			})}
		})
		token := i.token(t, map[string]any{
			"iss": served.URL, "aud": host, "sub": "x", "exp": time.Now().Add(time.Hour).Unix(),
		})
		if status, _, _ := s.exchange(t, token); status != http.StatusServiceUnavailable || requested.Load() {
			t.Errorf("%s: %d, requested: %t", name, status, requested.Load())
		}
	}
}

// TestTheLogHasTheCauseOfARefusal exchanges tokens that are refused. Of several at a time, one is logged for each
// issuer.
func TestTheLogHasTheCauseOfARefusal(t *testing.T) {
	i := startIssuer(t)
	now := newClock()
	log := &bytes.Buffer{}
	s := start(t, func(o *registry.Options) {
		configured(t, policy+"issuers:\n- url: "+i.url+"\n  audience: "+host+
			"\n  identities:\n  - {claims: {repository: acme/boats}, repository: acme/boats}\n")(o)
		o.Now, o.Log = now.read, slog.New(slog.NewTextHandler(log, nil))
	})
	token := func(claims map[string]any) string {
		all := map[string]any{"iss": i.url, "aud": host, "sub": "x", "exp": now.read().Add(time.Hour).Unix()}
		maps.Copy(all, claims)
		return i.token(t, all)
	}
	causes := []struct {
		claims map[string]any
		want   string
	}{
		{map[string]any{"aud": "another." + host}, "another." + host},
		{map[string]any{"repository": "acme/rafts"}, `repository=\"acme/rafts\"`},
		{map[string]any{"iss": "https://other.example.org"}, "https://other.example.org"},
		{map[string]any{"exp": now.read().Add(-time.Hour).Unix()}, "expired"},
	}
	for _, c := range causes {
		for range 3 {
			if status, _, _ := s.exchange(t, token(c.claims)); status != http.StatusUnauthorized {
				t.Errorf("%v: %d", c.claims, status)
			}
		}
		now.add(time.Minute)
	}
	s.stop() // The log is complete.
	for _, c := range causes {
		if !strings.Contains(log.String(), c.want) {
			t.Errorf("the log has no %s", c.want)
		}
	}
	if n := strings.Count(log.String(), "a token of an issuer is refused"); n != len(causes) {
		t.Errorf("%d of %d refusals are logged:\n%s", n, 3*len(causes), log)
	}
}

// TestAnIssuerMovesItsKeys changes the address of the keys of an issuer, and the keys, while the server runs.
func TestAnIssuerMovesItsKeys(t *testing.T) {
	former, next := startIssuer(t), startIssuer(t)
	now := newClock()
	var hasMoved atomic.Bool
	mux := http.NewServeMux()
	moving := port.Serve(t, mux)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		address := moving.URL + "/keys"
		if hasMoved.Load() {
			address = next.url + "/keys"
		}
		// The client reports a failure.
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": moving.URL, "jwks_uri": address})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		if hasMoved.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		http.Redirect(w, r, former.url+"/keys", http.StatusFound)
	})
	s := start(t, func(o *registry.Options) {
		configured(t, policy+"issuers:\n- {url: "+moving.URL+", audience: "+host+", userClaim: sub}\n")(o)
		o.Now = now.read
	})
	check := func(by *issuer, want int) {
		t.Helper()
		now.add(time.Minute) // Documents are kept for a short time.
		token := by.token(t, map[string]any{
			"iss": moving.URL, "aud": host, "sub": "x", "exp": now.read().Add(time.Hour).Unix(),
		})
		if status, _, _ := s.exchange(t, token); status != want {
			t.Errorf("the exchange: %d, want %d", status, want)
		}
	}
	check(former, http.StatusOK)
	hasMoved.Store(true)
	check(next, http.StatusServiceUnavailable)
	check(next, http.StatusOK)
	check(former, http.StatusUnauthorized)
}

func TestATokenOfAShortKeyIsRefused(t *testing.T) {
	const bits = 1024
	strong, short := startIssuer(t), startIssuerWithKey(t, bits)
	s := start(t, nil)
	configuration := policy + "issuers:\n"
	for name, i := range map[string]*issuer{"strong": strong, "short": short} {
		configuration += "- name: " + name + "\n  url: " + i.url + "\n  audience: " + host + "\n  userClaim: sub\n"
	}
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	token := func(i *issuer) string {
		return i.token(t, map[string]any{
			"iss": i.url, "aud": host, "sub": "alice", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
		})
	}
	s.waitPolicy(t, token(strong))
	if status, _, _ := s.exchange(t, token(short)); status != http.StatusUnauthorized {
		t.Errorf("the token of a key with %d bits: %d", bits, status)
	}
}

// A password that is longer than the server accepts is not issued.
func TestAnIdentityWithTooManyGroupsGetsNoPassword(t *testing.T) {
	i := startIssuer(t)
	s := start(t, nil)
	configuration := policy + "issuers:\n- url: " + i.url + "\n  audience: " + host +
		"\n  userClaim: sub\n  groupsClaim: groups\n"
	if err := os.WriteFile(filepath.Join(s.dir, "access.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	token := func(count int) string {
		groups := make([]string, count)
		for n := range groups {
			groups[n] = "group-" + strconv.Itoa(n)
		}
		return i.token(t, map[string]any{
			"iss": i.url, "aud": host, "sub": "alice", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
			"groups": groups,
		})
	}
	const few, many = 10, 3000
	s.waitPolicy(t, token(few))
	if status, password, _ := s.exchange(t, token(many)); status != http.StatusBadRequest || password != "" {
		t.Errorf("%d groups: %d with a password of %d bytes", many, status, len(password))
	}
}

// transport is the function of a transport.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
