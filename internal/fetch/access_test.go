package fetch_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// resolve resolves at one place.
func resolve(t *testing.T, s *fetch.Source, p fetch.Endpoint) (oci.Digest, error) {
	t.Helper()
	return s.Resolve(t.Context(), fetch.Origin{Ref: p.Ref, Endpoints: []fetch.Endpoint{p}}, 0)
}

// Credentials are sent only to the host and port that they are for: not to a mirror, not to
// the target of a redirect, and not to the token server that either of them names.
//
// hardening: A8, A9
func TestCredentialsGoToTheirHostAlone(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	mirror, storage := mirrorOf(t, home), mirrorOf(t, home)
	var tokens registryOfTokens
	tokens.start(t)
	home.does(func(w http.ResponseWriter, r *http.Request) bool {
		if wants("me")(w, r) {
			return true
		}
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, storage.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	for _, r := range []*registry{mirror, storage} {
		r.does(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") == "Bearer everybody" {
				return r.Host == mirror.address && answer(http.StatusForbidden)(w, r)
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q`, tokens.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		})
	}
	mine := keychain(t, home.address, "me")
	o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: mirror.ref(), Keychain: mine}, {
		Ref: ref, Keychain: mine,
	}}}
	source := sourcetest.New(t, nil)
	readable(t, source, o)
	if len(mirror.matching("")) == 0 || len(storage.matching("/blobs/")) == 0 || tokens.asked.Load() == 0 {
		t.Fatal("the test does not test what it should")
	}
	for _, r := range append(mirror.matching(""), storage.matching("")...) {
		if a := r.Header.Get("Authorization"); a != "" && a != "Bearer everybody" {
			t.Errorf("%s %s was sent %q", r.Host, r.URL.Path, a)
		}
	}
	if tokens.credentials.Load() != 0 {
		t.Error("the token server of another host was sent credentials")
	}
}

// registryOfTokens issues a token for every request, and counts requests with
// credentials.
type registryOfTokens struct {
	*httptest.Server
	asked, credentials atomic.Int64
}

func (s *registryOfTokens) start(t *testing.T) {
	t.Helper()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if r.Header.Get("Authorization") != "" || r.Method != http.MethodGet {
			s.credentials.Add(1)
		}
		_, _ = fmt.Fprint(w, `{"token":"everybody"}`)
	}))
	t.Cleanup(s.Close)
}

// Two packages with different secrets for one host never share a token, and two
// with the same secrets ask for one once.
func TestClientsAreShared(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	var issued, denied atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		issued.Add(1)
		_, _ = fmt.Fprintf(w, `{"token":"for-%s"}`, user)
	}))
	t.Cleanup(tokens.Close)
	home.does(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer for-good") {
			return false
		}
		denied.Add(1)
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q`, tokens.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	source := sourcetest.New(t, nil)
	for range 3 {
		// Keychains of their own, with the same credentials.
		for _, user := range []string{"good-a", "good-b"} {
			if _, err := resolve(t, source, fetch.Endpoint{Ref: ref, Keychain: keychain(t, home.address, user)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if issued.Load() != 2 || denied.Load() != 2 {
		t.Errorf("%d tokens were issued and %d requests denied, want 2 each", issued.Load(), denied.Load())
	}
	for _, p := range []fetch.Endpoint{{Ref: ref}, {Ref: ref, Keychain: keychain(t, home.address, "bad")}} {
		if _, err := resolve(t, source, p); !errors.Is(err, remote.ErrUnauthorized) {
			t.Errorf("somebody else got in: %v", err)
		}
	}
}

// A registry without credentials of its own gets the credentials of the machine.
func TestCredentialsOfTheMachine(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	home.does(wants("machine"))
	source := sourcetest.New(t, func(o *fetch.Options) { o.Remote.Keychain = keychain(t, home.address, "machine") })
	for name, p := range map[string]fetch.Endpoint{"None": {Ref: ref}, "OfAnotherHost": {
		Ref: ref, Keychain: keychain(t, "other.test", "x"),
	}} {
		if _, err := resolve(t, source, p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := resolve(t, source, fetch.Endpoint{
		Ref: ref, Keychain: keychain(t, home.address, "mine"),
	}); !errors.Is(err, remote.ErrUnauthorized) {
		t.Errorf("the place's own credentials were not the ones used: %v", err)
	}
}

// Few clients are kept, and each works when its turn comes again.
func TestClientsAreBounded(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	source := sourcetest.New(t, func(o *fetch.Options) { o.Clients = 2 })
	for i := range 12 {
		user := fmt.Sprint("user-", i%4)
		home.does(wants(user))
		if _, err := resolve(t, source, fetch.Endpoint{Ref: ref, Keychain: keychain(t, home.address, user)}); err != nil {
			t.Fatal(err)
		}
	}
}

// All secrets of a package are tried, in their order.
func TestEverySecretIsTried(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	home.does(wants("good"))
	for _, users := range [][]string{{"good"}, {"bad", "good"}, {"good", "bad"}, {"bad", "worse", "good"}, {
		"bad", "worse",
	}} {
		_, err := resolve(t, sourcetest.New(t, nil), fetch.Endpoint{Ref: ref, Keychain: keychain(t, home.address, users...)})
		if (err == nil) != slices.Contains(users, "good") {
			t.Errorf("%v: %v", users, err)
		}
	}
}

const name = "registry.acme.test"

// The authorities of a place are trusted for it, and for nothing else.
func TestCABundle(t *testing.T) {
	home := newRegistry(t)
	push(t, home.address)
	secure := unstarted(t, home.backend)
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	// The certificate of the test's server is for this name.
	ref := oci.MustParseReference("example.com/content/test:v1.0.0")
	source := sourcetest.New(t, func(o *fetch.Options) { o.Remote.Dial = dialTo(secure.address) })
	o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{{Ref: ref, CABundle: authority}}}
	readable(t, source, o)
	if _, err := resolve(t, source, fetch.Endpoint{Ref: ref}); !errors.Is(err, remote.ErrTLSUntrusted) {
		t.Errorf("without the bundle: %v", err)
	}
	other := oci.MustParseReference(name + "/content/test:v1.0.0")
	if _, err := resolve(t, source, fetch.Endpoint{
		Ref: other, CABundle: authority,
	}); !errors.Is(err, remote.ErrTLSUntrusted) {
		t.Errorf("under another name: %v", err)
	}
	if _, err := resolve(t, source, fetch.Endpoint{
		Ref: ref, CABundle: "no PEM",
	}); !errors.Is(err, fetch.ErrCABundleInvalid) {
		t.Errorf("without certificates: %v", err)
	}
}

// Plain HTTP is used for the endpoint that requires it, and for no other one.
func TestPlainHTTP(t *testing.T) {
	home := newRegistry(t)
	push(t, home.address)
	ref := oci.MustParseReference(name + ":5000/content/test:v1.0.0")
	var dialed atomic.Value
	source := sourcetest.New(t, func(o *fetch.Options) {
		o.Remote.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed.Store(address)
			return dialTo(home.address)(ctx, network, address)
		}
		o.Remote.Keychain = authn.DefaultKeychain
	})
	if _, err := resolve(t, source, fetch.Endpoint{Ref: ref, PlainHTTP: true}); err != nil {
		t.Fatal(err)
	}
	if got := dialed.Load(); got != name+":5000" {
		t.Errorf("dialed %v", got)
	}
	home.reset()
	if _, err := resolve(t, source, fetch.Endpoint{Ref: ref}); !errors.Is(err, remote.ErrTLSUntrusted) {
		t.Errorf("without saying so: %v", err)
	}
	if n := len(home.matching("")); n != 0 {
		t.Errorf("%d requests without TLS", n)
	}
}
