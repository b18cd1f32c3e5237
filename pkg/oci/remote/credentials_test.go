package remote

import (
	"context"
	"encoding/json"
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

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// wantBearer responds with a challenge until a request has the right token.
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

// keychain maps exact hosts to credentials.
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

// hardening: A8
func TestRedirectDropsCredentials(t *testing.T) {
	f := ocitest.NewRegistry(t)
	img := ocitest.Hello(t)
	ref := f.Publish(t, img, "v1")
	storage := ocitest.NewRegistry(t)
	storage.Publish(t, img, "v1")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
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
	r := testRemote(t, func(o *Options) {
		o.Keychain = keychain{f.Host(): {Username: "me", Password: "secret"}, storage.Host(): {
			Username: "other", Password: "other",
		}}
	})
	if err := read(t, r, ref); err != nil {
		t.Fatal(err)
	}
	if storage.Count("/blobs/") == 0 {
		t.Fatal("the redirect was not followed")
	}
	for _, h := range storage.Headers {
		if h.Get("Authorization") != "" || h.Get("Cookie") != "" {
			t.Errorf("the other host got %v", h)
		}
	}
}

// hardening: A8
func TestRedirectsAreBounded(t *testing.T) {
	tests := map[string]func(n int) string{
		"Circle": func(n int) string { return fmt.Sprintf("/v2/x/blobs/%d", n%2) },
		"Long":   func(n int) string { return fmt.Sprintf("/v2/x/blobs/%d", n) },
	}
	for name, next := range tests {
		t.Run(name, func(t *testing.T) {
			f := ocitest.NewRegistry(t)
			ref := f.Publish(t, ocitest.Hello(t), "v1")
			var n atomic.Int64
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				http.Redirect(w, r, next(int(n.Add(1))), http.StatusFound)
				return true
			}
			ocitest.WantCode(t, read(t, testRemote(t, nil), ref), ErrRegistryUnavailable)
			if n.Load() > maxRedirects+1 {
				t.Errorf("%d redirects were followed", n.Load())
			}
		})
	}
}

// hardening: A9
func TestCredentialsGoToTheExactHost(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Publish(t, ocitest.Hello(t), "v1")
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	host, port, _ := net.SplitHostPort(f.Host())
	r := testRemote(t, func(o *Options) {
		o.Lookup = loopbackNames
		o.Keychain = keychain{
			host: {Username: "me", Password: "secret"}, "localhost": {Username: "me", Password: "secret"},
			"evil.localhost": {Username: "me", Password: "secret"},
		}
	})
	for _, registry := range []string{f.Host(), "localhost:" + port, "evil.localhost:" + port} {
		ocitest.WantCode(t, read(t, r, oci.MustParseReference(registry+"/acme/pkg:v1")), ErrUnauthorized)
	}
	for _, h := range f.Headers {
		if h.Get("Authorization") != "" {
			t.Errorf("the registry got %v", h)
		}
	}
}

func loopbackNames(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// hardening: A10
func TestTokenAnswers(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   errcode.Code
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
			f := ocitest.NewRegistry(t)
			ref := f.Publish(t, ocitest.Hello(t), "v1")
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
			f.Fault = wantBearer("good", tokens.URL)
			r := testRemote(t, func(o *Options) {
				o.Keychain = keychain{f.Host(): {Username: "me", Password: "secret-word"}}
			})
			err := read(t, r, ref)
			ocitest.WantCode(t, err, tc.want)
			if strings.Contains(errcode.Message(err), "secret-word") {
				t.Errorf("the secret is in %q", errcode.Message(err))
			}
			if asked.Load() > int64(2*r.opts.Attempts) {
				t.Errorf("%d tokens were asked for", asked.Load())
			}
		})
	}
}

// A token that expires during a download is requested once more.
//
// hardening: A10
func TestExpiredTokenIsRenewed(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	var issued atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("scope"); got != "repository:acme/pkg:pull" {
			t.Errorf("scope %q", got)
		}
		_, _ = fmt.Fprintf(w, `{"token":"t%d"}`, issued.Add(1))
	}))
	t.Cleanup(tokens.Close)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
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

// hardening: A10
func TestRefreshToken(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.FormValue("grant_type") != "refresh_token" ||
			r.FormValue("refresh_token") != "refresh" {
			t.Errorf("%s %v", r.Method, r.Form)
		}
		_, _ = io.WriteString(w, `{"access_token":"good"}`)
	}))
	t.Cleanup(tokens.Close)
	f.Fault = wantBearer("good", tokens.URL)
	r := testRemote(t, func(o *Options) { o.Keychain = keychain{f.Host(): {IdentityToken: "refresh"}} })
	if err := read(t, r, ref); err != nil {
		t.Fatal(err)
	}
}

// hardening: A11
func TestAbsentAndForbiddenTagsDiffer(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Publish(t, ocitest.Hello(t), "v1.0.0")
	r := testRemote(t, nil)
	ocitest.WantCode(t, read(t, r, f.Ref("sha256-abc.sig")), ErrTagNotFound)
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	ocitest.WantCode(t, read(t, r, f.Ref("sha256-abc.sig")), ErrUnauthorized)
}

// hardening: A18
func TestProxy(t *testing.T) {
	f := ocitest.NewRegistry(t)
	img := ocitest.Hello(t)
	f.Publish(t, img, "v1")
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied++
		f.ServeNormally(w, r)
	}))
	t.Cleanup(proxy.Close)
	r := testRemote(t, func(o *Options) {
		o.Hosts = map[string]HostOptions{"registry.acme.test": {PlainHTTP: true}}
		o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
		o.Lookup = loopbackNames
	})
	if err := read(t, r, oci.MustParseReference("registry.acme.test/acme/pkg:v1")); err != nil {
		t.Fatal(err)
	}
	if proxied == 0 {
		t.Error("the proxy was not used")
	}
}

// An error of the proxy names it: the registry and its certificate are not at fault.
func TestProxyThatDoesNotWorkIsNamed(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for _, proxy := range []string{closed.URL, strings.Replace(plain.URL, "http:", "https:", 1)} {
		r := testRemote(t, func(o *Options) {
			o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
		})
		err := read(t, r, oci.MustParseReference("registry.acme.test:5000/acme/pkg:v1"))
		ocitest.WantCode(t, err, ErrRegistryUnavailable)
		if do := errcode.From(err).Do; !strings.Contains(err.Error(), "its proxy cannot be reached: ") ||
			!strings.Contains(do, "add registry.acme.test to NO_PROXY") {
			t.Errorf("%s: got %v (%s)", proxy, err, do)
		}
	}
}

// hardening: A19
func TestErrorNamesClockSkew(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	for _, skew := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
		r := testRemote(t, func(o *Options) { o.Now = func() time.Time { return time.Now().Add(skew) } })
		err := read(t, r, f.Ref("v1"))
		ocitest.WantCode(t, err, ErrUnauthorized)
		const message = "the clock of this machine differs from the registry's by "
		if skew == 0 && strings.Contains(err.Error(), "clock") || skew != 0 && !strings.Contains(err.Error(), message) {
			t.Errorf("a clock that differs by %s: %v", skew, err)
		}
	}
}

// Pull secrets of clusters can be for a part of a registry.
func TestCredentialsForARepository(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if user, _, _ := r.BasicAuth(); user == "acme" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	r := testRemote(t, func(o *Options) {
		o.Keychain = keychain{f.Host() +
			"/acme/pkg": {Username: "acme", Password: "x"}, f.Host(): {Username: "other", Password: "x"}}
	})
	if err := read(t, r, ref); err != nil {
		t.Error(err)
	}
}

// A registry that is an alias redirects to another one. The other one gets an anonymous
// token and none of the alias's credentials.
func TestRegistryThatRedirectsToAnother(t *testing.T) {
	img := ocitest.Hello(t)
	behind := ocitest.NewRegistry(t)
	behind.Publish(t, img, "v1")
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the token server got %v", r.Header)
		}
		_, _ = io.WriteString(w, `{"token":"everybody"}`)
	}))
	t.Cleanup(tokens.Close)
	behind.Fault = wantBearer("everybody", tokens.URL)
	front := ocitest.NewRegistry(t)
	front.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, behind.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	secret := authn.AuthConfig{Username: "me", Password: "secret"}
	r := testRemote(t, func(o *Options) { o.Keychain = keychain{front.Host(): secret, behind.Host(): secret} })
	if err := read(t, r, front.Ref("v1")); err != nil {
		t.Fatal(err)
	}
}

// An error has one command that logs in: the one of the registry, which can have flags, if it is for this registry.
func TestAdviceRepeatsNoLoginCommandOfTheRegistry(t *testing.T) {
	f := ocitest.NewRegistry(t)
	for words, want := range map[string]string{
		"a push needs a token; run `xpkg login " + f.Host() +
			" --data-dir /data`": "Check the repository's name, and log in as a user who may push to acme/pkg.",
		"a push needs a token; run `xpkg login other.example.com --data-dir /data`": "Check the repository's name, and log in with `xpkg login " +
			f.Host() + "` as a user who may push to acme/pkg.",
	} {
		f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).
				Encode(map[string]any{"errors": []map[string]string{{"code": "UNAUTHORIZED", "message": words}}})
			return true
		}
		_, err := testRemote(t, nil).Push(t.Context(), f.Ref("v1"), ocitest.Hello(t))
		ocitest.WantCode(t, err, ErrUnauthorized)
		if got := errcode.From(err); got.Do != "No credentials were sent. "+want || !strings.Contains(got.Error(), words) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The error of a token server that refuses the credentials does not state that none were sent.
func TestAdviceForRefusedCredentials(t *testing.T) {
	f := ocitest.NewRegistry(t)
	tokens := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }),
	)
	t.Cleanup(tokens.Close)
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	for _, credentials := range []keychain{nil, {f.Host(): {Username: "me", Password: "wrong"}}} {
		_, err := testRemote(t, func(o *Options) { o.Keychain = credentials }).Resolve(t.Context(), f.Ref("v1"))
		ocitest.WantCode(t, err, ErrUnauthorized)
		if do := errcode.From(err).Do; strings.Contains(do, "No credentials were sent") != (credentials == nil) {
			t.Errorf("with the credentials %v: %q", credentials, do)
		}
	}
}

// The advice for a refused call fits its action, and states whether credentials were sent.
func TestAdviceForARefusedCall(t *testing.T) {
	digest := oci.MustParseDigest(ocitest.EmptyDigest)
	calls := map[string]struct {
		call   func(context.Context, *Client, oci.Reference) error
		advice string
	}{
		"read": {func(ctx context.Context, r *Client, ref oci.Reference) error {
			_, err := r.Resolve(ctx, ref)
			return err
		},
			"Check the repository's name, and log in with `xpkg login HOST` as a user with read access to acme/pkg. A manager in a cluster needs a pull secret with read access to the package."},
		"push": {func(ctx context.Context, r *Client, ref oci.Reference) error {
			_, err := r.Push(ctx, ref, ocitest.Hello(t))
			return err
		},
			"Check the repository's name, and log in with `xpkg login HOST` as a user who may push to acme/pkg."},
		"delete": {func(ctx context.Context, r *Client, ref oci.Reference) error {
			return r.Delete(ctx, ref.WithDigest(digest))
		},
			"Check the repository's name, and log in with `xpkg login HOST` as a user who may delete in acme/pkg."},
		"login": {func(ctx context.Context, r *Client, ref oci.Reference) error { return r.Ping(ctx, ref.Registry) },
			"Log in with `xpkg login HOST`."},
	}
	for _, scheme := range []string{"Basic", "Bearer"} {
		f := ocitest.NewRegistry(t)
		tokens := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"token":"weak"}`) }),
		)
		t.Cleanup(tokens.Close)
		f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("WWW-Authenticate", scheme+` realm="`+tokens.URL+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		host, _, _ := net.SplitHostPort(f.Host())
		for name, c := range calls {
			for _, credentials := range []keychain{nil, {host: {Username: "me", Password: "secret"}, f.Host(): {
				Username: "me", Password: "secret",
			}}} {
				err := c.call(t.Context(), testRemote(t, func(o *Options) { o.Keychain = credentials }), f.Ref("v1"))
				ocitest.WantCode(t, err, ErrUnauthorized)
				want := strings.ReplaceAll(c.advice, "HOST", f.Host())
				if credentials == nil {
					want = "No credentials were sent. " + want
				}
				if got := errcode.From(err).Do; got != want {
					t.Errorf("%s, %s, credentials %v: %q, want %q", scheme, name, credentials != nil, got, want)
				}
			}
		}
	}
}

// A registry can list fewer repositories to anonymous clients, and ask none of them for credentials.
func TestListOfRepositoriesIsRequestedWithCredentials(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v2/_catalog" {
			return false
		}
		names := "[]"
		if user, password, _ := r.BasicAuth(); user == "me" && password == "secret" {
			names = `["acme/private"]`
		}
		_, _ = io.WriteString(w, `{"repositories":`+names+`}`)
		return true
	}
	for name, want := range map[string]int{"anonymous": 0, "me": 1} {
		r := testRemote(t, func(o *Options) {
			if name == "me" {
				o.Keychain = keychain{f.Host(): {Username: "me", Password: "secret"}}
			}
		})
		if got, err := r.Repositories(t.Context(), f.Host(), ""); err != nil || len(got) != want {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
