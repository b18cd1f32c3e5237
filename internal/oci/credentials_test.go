package oci

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// wantBearer asks for a token until it gets the right one.
func wantBearer(token, realm string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="reg",scope="repository:other:pull"`, realm))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// keychain gives credentials by the exact host.
type keychain map[string]authn.AuthConfig

func (k keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if c, ok := k[r.String()]; ok {
		return authn.FromConfig(c), nil
	}
	if c, ok := k[r.RegistryStr()]; ok {
		return authn.FromConfig(c), nil
	}
	return authn.Anonymous, nil
}

func TestA08RedirectLosesCredentials(t *testing.T) {
	f := newFakeRegistry(t)
	img := buildHello(t)
	ref := f.publish(t, img, "v1")
	storage := newFakeRegistry(t)
	storage.publish(t, img, "v1")
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "x", Secure: true, HttpOnly: true})
			http.Redirect(w, r, storage.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	r := testRemote(t, func(o *RemoteOptions) {
		o.Keychain = keychain{f.host(): {Username: "me", Password: "secret"}, storage.host(): {Username: "other", Password: "other"}}
	})
	if err := read(t, r, ref); err != nil {
		t.Fatal(err)
	}
	if storage.count("/blobs/") == 0 {
		t.Fatal("the redirect was not followed")
	}
	for _, h := range storage.headers {
		if h.Get("Authorization") != "" || h.Get("Cookie") != "" {
			t.Errorf("the other host got %v", h)
		}
	}
}

func TestA08RedirectLoops(t *testing.T) {
	tests := map[string]func(n int) string{
		"Circle": func(n int) string { return fmt.Sprintf("/v2/x/blobs/%d", n%2) },
		"Long":   func(n int) string { return fmt.Sprintf("/v2/x/blobs/%d", n) },
	}
	for name, next := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeRegistry(t)
			ref := f.publish(t, buildHello(t), "v1")
			var n atomic.Int64
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				http.Redirect(w, r, next(int(n.Add(1))), http.StatusFound)
				return true
			}
			wantCode(t, read(t, testRemote(t, nil), ref), ErrRegistryUnavailable)
			if n.Load() > maxRedirects+1 {
				t.Errorf("%d redirects were followed", n.Load())
			}
		})
	}
}

func TestA09CredentialsForTheExactHost(t *testing.T) {
	f := newFakeRegistry(t)
	f.publish(t, buildHello(t), "v1")
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	host, port, _ := net.SplitHostPort(f.host())
	r := testRemote(t, func(o *RemoteOptions) {
		o.Lookup = loopbackNames
		o.Keychain = keychain{
			host: {Username: "me", Password: "secret"}, "localhost": {Username: "me", Password: "secret"},
			"evil.localhost": {Username: "me", Password: "secret"},
		}
	})
	for _, registry := range []string{f.host(), "localhost:" + port, "evil.localhost:" + port} {
		wantCode(t, read(t, r, MustParseReference(registry+"/acme/pkg:v1")), ErrUnauthorized)
	}
	for _, h := range f.headers {
		if h.Get("Authorization") != "" {
			t.Errorf("the registry got %v", h)
		}
	}
}

func loopbackNames(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func TestA10Tokens(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   failure.Code
	}{
		"HTML":        {http.StatusOK, "<html>log in</html>", ErrUnauthorized},
		"NoToken":     {http.StatusOK, `{"expires_in":300}`, ErrUnauthorized},
		"LineBreak":   {http.StatusOK, `{"token":"a\r\nX: y"}`, ErrUnauthorized},
		"WrongToken":  {http.StatusOK, `{"token":"wrong"}`, ErrUnauthorized},
		"Refused":     {http.StatusForbidden, `{}`, ErrUnauthorized},
		"Broken":      {http.StatusBadGateway, ``, ErrRegistryUnavailable},
		"TooMany":     {http.StatusTooManyRequests, ``, ErrThrottled},
		"EndlessBody": {http.StatusOK, strings.Repeat(" ", maxToken+10) + `{"token":"good"}`, ErrUnauthorized},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeRegistry(t)
			ref := f.publish(t, buildHello(t), "v1")
			var asked atomic.Int64
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if user, password, _ := r.BasicAuth(); user != "me" || password != "secret-word" {
					t.Errorf("credentials %q %q", user, password)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(tokens.Close)
			f.fault = wantBearer("good", tokens.URL)
			r := testRemote(t, func(o *RemoteOptions) {
				o.Keychain = keychain{f.host(): {Username: "me", Password: "secret-word"}}
			})
			err := read(t, r, ref)
			wantCode(t, err, tc.want)
			if strings.Contains(failure.Message(err), "secret-word") {
				t.Errorf("the secret is in %q", failure.Message(err))
			}
			if asked.Load() > int64(2*r.opts.Attempts) {
				t.Errorf("%d tokens were asked for", asked.Load())
			}
		})
	}
}

// A token can end during a download, and is asked for once more.
func TestA10TokenExpires(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	var issued atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("scope"); got != "repository:acme/pkg:pull" {
			t.Errorf("scope %q", got)
		}
		_, _ = fmt.Fprintf(w, `{"token":"t%d"}`, issued.Add(1))
	}))
	t.Cleanup(tokens.Close)
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		token := "t1"
		if strings.Contains(r.URL.Path, "/blobs/") {
			token = "t2"
		}
		return wantBearer(token, tokens.URL)(w, r)
	}
	if err := read(t, testRemote(t, nil), ref); err != nil {
		t.Fatal(err)
	}
	if issued.Load() != 2 {
		t.Errorf("%d tokens were asked for", issued.Load())
	}
}

func TestA10RefreshToken(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.FormValue("grant_type") != "refresh_token" || r.FormValue("refresh_token") != "refresh" {
			t.Errorf("%s %v", r.Method, r.Form)
		}
		_, _ = io.WriteString(w, `{"access_token":"good"}`)
	}))
	t.Cleanup(tokens.Close)
	f.fault = wantBearer("good", tokens.URL)
	r := testRemote(t, func(o *RemoteOptions) { o.Keychain = keychain{f.host(): {IdentityToken: "refresh"}} })
	if err := read(t, r, ref); err != nil {
		t.Fatal(err)
	}
}

func TestA11AbsentAndRefusedDiffer(t *testing.T) {
	f := newFakeRegistry(t)
	f.publish(t, buildHello(t), "v1.0.0")
	r := testRemote(t, nil)
	wantCode(t, read(t, r, f.ref("sha256-abc.sig")), ErrTagNotFound)
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	wantCode(t, read(t, r, f.ref("sha256-abc.sig")), ErrUnauthorized)
}

func TestA18Proxy(t *testing.T) {
	f := newFakeRegistry(t)
	img := buildHello(t)
	f.publish(t, img, "v1")
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied++
		f.normal(w, r)
	}))
	t.Cleanup(proxy.Close)
	r := testRemote(t, func(o *RemoteOptions) {
		o.Hosts = map[string]HostOptions{"registry.acme.test": {PlainHTTP: true}}
		o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
		o.Lookup = loopbackNames
	})
	if err := read(t, r, MustParseReference("registry.acme.test/acme/pkg:v1")); err != nil {
		t.Fatal(err)
	}
	if proxied == 0 {
		t.Error("the proxy was not used")
	}
}

func TestA19ClockSkewIsNamed(t *testing.T) {
	f := newFakeRegistry(t)
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	r := testRemote(t, func(o *RemoteOptions) { o.Now = func() time.Time { return time.Now().Add(24 * time.Hour) } })
	err := read(t, r, f.ref("v1"))
	wantCode(t, err, ErrUnauthorized)
	if !strings.Contains(err.Error(), "clock") {
		t.Errorf("%v does not name the clock", err)
	}
}

// Pull secrets of clusters can be for a part of a registry.
func TestCredentialsForARepository(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if user, _, _ := r.BasicAuth(); user == "acme" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	r := testRemote(t, func(o *RemoteOptions) {
		o.Keychain = keychain{f.host() + "/acme/pkg": {Username: "acme", Password: "x"}, f.host(): {Username: "other", Password: "x"}}
	})
	if err := read(t, r, ref); err != nil {
		t.Error(err)
	}
}

// A registry that is only a name for another one redirects to it. The other one
// gets a token for everybody and none of the first one's credentials.
func TestRegistryThatRedirectsToAnother(t *testing.T) {
	img := buildHello(t)
	behind := newFakeRegistry(t)
	behind.publish(t, img, "v1")
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the token server got %v", r.Header)
		}
		_, _ = io.WriteString(w, `{"token":"everybody"}`)
	}))
	t.Cleanup(tokens.Close)
	behind.fault = wantBearer("everybody", tokens.URL)
	front := newFakeRegistry(t)
	front.fault = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, behind.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	secret := authn.AuthConfig{Username: "me", Password: "secret"}
	r := testRemote(t, func(o *RemoteOptions) { o.Keychain = keychain{front.host(): secret, behind.host(): secret} })
	if err := read(t, r, front.ref("v1")); err != nil {
		t.Fatal(err)
	}
}
