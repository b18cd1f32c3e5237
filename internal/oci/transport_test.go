package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// read resolves, fetches and reads, and gives only the error.
func read(t *testing.T, r *Remote, ref Reference) error {
	t.Helper()
	_, _, err := fetchYAML(t.Context(), r, newStore(t), ref)
	return err
}

func TestA05TLS(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		server func(*tls.Config)
		host   func(*httptest.Server) HostOptions
		now    time.Time
		want   string
	}{
		"SelfSigned": {host: func(*httptest.Server) HostOptions { return HostOptions{} }, want: "unknown authority"},
		"Expired":    {host: trusted, now: now.AddDate(100, 0, 0), want: "the clock of this machine says"},
		"NotYet":     {host: trusted, now: now.AddDate(-100, 0, 0), want: "the clock of this machine says"},
		"OldProtocol": {
			server: func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 },
			host:   trusted, want: "protocol version",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := unstartedRegistry(t)
			f.TLS = &tls.Config{} //nolint:gosec // The test wants old versions too.
			f.Config.ErrorLog = quiet
			if tc.server != nil {
				tc.server(f.TLS)
			}
			f.StartTLS()
			ref := f.publish(t, buildHello(t), "v1")
			r := testRemote(t, func(o *RemoteOptions) {
				o.Hosts = map[string]HostOptions{f.host(): tc.host(f.Server)}
				if !tc.now.IsZero() {
					o.Now = func() time.Time { return tc.now }
				}
			})
			err := read(t, r, ref)
			wantCode(t, err, ErrTLSUntrusted)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
			if f.count("/") != 0 {
				t.Error("the registry got a request")
			}
		})
	}
}

func TestA05WrongName(t *testing.T) {
	f := unstartedRegistry(t)
	f.Config.ErrorLog = quiet
	f.StartTLS()
	const host = "registry.acme.test"
	_, port, _ := net.SplitHostPort(f.host())
	r := testRemote(t, func(o *RemoteOptions) {
		o.Hosts = map[string]HostOptions{host + ":" + port: trusted(f.Server)}
		o.Lookup = loopbackNames
	})
	wantCode(t, read(t, r, MustParseReference(host+":"+port+"/acme/pkg:v1")), ErrTLSUntrusted)
}

func TestA05NoDowngrade(t *testing.T) {
	f := newFakeRegistry(t) // It speaks plain HTTP.
	ref := f.publish(t, buildHello(t), "v1")
	r := testRemote(t, func(o *RemoteOptions) { o.Hosts = map[string]HostOptions{f.host(): {}} })
	err := read(t, r, ref)
	wantCode(t, err, ErrTLSUntrusted)
	if f.count("/") != 0 {
		t.Error("the registry got a request without TLS")
	}
}

func TestA05TrustedAuthority(t *testing.T) {
	f := unstartedRegistry(t)
	f.StartTLS()
	ref := f.publish(t, buildHello(t), "v1")
	for name, h := range map[string]HostOptions{"CA": trusted(f.Server), "Insecure": {SkipVerify: true}} {
		t.Run(name, func(t *testing.T) {
			r := testRemote(t, func(o *RemoteOptions) { o.Hosts = map[string]HostOptions{f.host(): h} })
			if err := read(t, r, ref); err != nil {
				t.Error(err)
			}
		})
	}
}

func trusted(s *httptest.Server) HostOptions {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return HostOptions{RootCAs: pool}
}

// publicRegistry is a registry that is reached by name, and whose address is a
// public one as far as the client can tell.
type publicRegistry struct {
	*fakeRegistry
	name string
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// dialed are the addresses that were connected to.
	dialed atomic.Value
}

// publicConn pretends to have a public peer.
type publicConn struct{ net.Conn }

func (publicConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 443} }

// startPublic serves a registry as https://registry.acme.test.
func startPublic(t *testing.T, names map[string][]string) (*publicRegistry, *Remote) {
	t.Helper()
	f := unstartedRegistry(t)
	f.Config.ErrorLog = quiet
	f.StartTLS()
	p := &publicRegistry{fakeRegistry: f, name: "example.com"}
	var flips atomic.Int64
	r := testRemote(t, func(o *RemoteOptions) {
		// The certificate of httptest is for example.com.
		o.Hosts = map[string]HostOptions{p.name: trusted(f.Server)}
		o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == p.name {
				return []netip.Addr{netip.MustParseAddr("203.0.113.5")}, nil
			}
			all := names[host]
			if len(all) == 0 {
				return nil, fmt.Errorf("the test has no host %s", host)
			}
			n := int(flips.Add(1)-1) % len(all)
			return []netip.Addr{netip.MustParseAddr(all[n])}, nil
		}
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			p.dialed.Store(address)
			if address != "203.0.113.5:443" {
				return nil, fmt.Errorf("the test has no address %s", address)
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, f.host())
			return publicConn{conn}, err
		}
		o.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	})
	return p, r
}

func (p *publicRegistry) ref(tag string) Reference {
	return MustParseReference(p.name + "/acme/pkg:" + tag)
}

func TestA06A07ForbiddenRealm(t *testing.T) {
	names := map[string][]string{
		"metadata.acme.test": {"169.254.169.254"},
		"inside.acme.test":   {"10.0.0.1"},
		"rebind.acme.test":   {"10.9.9.9"},
		"2130706433":         {"127.0.0.1"},
		"0177.0.0.1":         {"127.0.0.1"},
		"nat64.acme.test":    {"64:ff9b::a9fe:a9fe"},
		"shared.acme.test":   {"100.64.0.1"},
		"zero.acme.test":     {"0.0.0.0"},
	}
	realms := []string{
		"http://169.254.169.254/latest/meta-data", "https://169.254.169.254/token", "https://10.0.0.1/token",
		"https://[::ffff:127.0.0.1]/token", "https://[::1]/token", "https://[fe80::1]/token", "https://[fd00::1]/token",
		"https://127.0.0.1/token", "https://localhost/token", "https://2130706433/token", "https://0177.0.0.1/token",
		"https://metadata.acme.test/token", "https://inside.acme.test/token", "https://rebind.acme.test/token",
		"https://nat64.acme.test/token", "https://shared.acme.test/token", "https://zero.acme.test/token",
		"http://tokens.acme.test/token", "https://user:secret@tokens.acme.test/token", "file:///etc/passwd",
	}
	for _, realm := range realms {
		t.Run(realm, func(t *testing.T) {
			p, r := startPublic(t, names)
			p.fault = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=x", realm))
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			err := read(t, r, p.ref("v1"))
			if realm == "file:///etc/passwd" {
				wantCode(t, err, ErrUnauthorized)
			} else {
				wantCode(t, err, ErrForbiddenAddress)
			}
			if got := p.dialed.Load(); got != "203.0.113.5:443" {
				t.Errorf("connected to %v", got)
			}
		})
	}
}

func TestA07ForbiddenRedirect(t *testing.T) {
	names := map[string][]string{"cdn.acme.test": {"192.168.1.1"}}
	for _, location := range []string{"https://cdn.acme.test/x", "https://10.1.2.3/x", "https://127.0.0.1:1/x", "http://cdn.acme.test/x", "ftp://cdn.acme.test/x", "https:///x"} {
		t.Run(location, func(t *testing.T) {
			p, r := startPublic(t, names)
			p.publish(t, buildHello(t), "v1")
			p.fault = func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/blobs/") {
					return false
				}
				http.Redirect(w, req, location, http.StatusTemporaryRedirect)
				return true
			}
			wantCode(t, read(t, r, p.ref("v1")), ErrForbiddenAddress)
		})
	}
}

// A registry on this machine or in a private network may use neighbors.
func TestA06LocalRegistryUsesLocalTokenServer(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"good"}`)
	}))
	t.Cleanup(tokens.Close)
	f.fault = wantBearer("good", tokens.URL)
	if err := read(t, testRemote(t, nil), ref); err != nil {
		t.Fatal(err)
	}
}

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

func TestNetworkMayReach(t *testing.T) {
	tests := []struct {
		home, target string
		want         bool
	}{
		{"203.0.113.5", "198.51.100.7", true},
		{"203.0.113.5", "10.0.0.1", false},
		{"203.0.113.5", "169.254.169.254", false},
		{"203.0.113.5", "127.0.0.1", false},
		{"10.0.0.1", "10.0.0.2", true},
		{"10.0.0.1", "127.0.0.1", false},
		{"10.0.0.1", "169.254.169.254", false},
		{"127.0.0.1", "127.0.0.2", true},
		{"127.0.0.1", "192.168.0.1", true},
		{"127.0.0.1", "169.254.169.254", false},
		{"127.0.0.1", "224.0.0.1", false},
		{"127.0.0.1", "2002:7f00:1::", true},
		{"203.0.113.5", "2002:7f00:1::", false},
	}
	for _, tc := range tests {
		home, target := networkOf(netip.MustParseAddr(tc.home)), networkOf(netip.MustParseAddr(tc.target))
		if got := home.mayReach(target); got != tc.want {
			t.Errorf("%s may reach %s: %t", tc.home, tc.target, got)
		}
	}
}

// keychain gives credentials by the exact host.
type keychain map[string]authn.AuthConfig

func (k keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
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

func TestA12Throttled(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	r := testRemote(t, func(o *RemoteOptions) { o.Now = func() time.Time { return now } })
	err := read(t, r, ref)
	wantCode(t, err, ErrThrottled)
	if !strings.Contains(err.Error(), "until 2026-01-02T04:04:05Z") {
		t.Errorf("%v", err)
	}
	before := f.count("/")
	wantCode(t, read(t, r, ref), ErrThrottled)
	if f.count("/") != before {
		t.Error("the registry was asked again before its time")
	}
	other := newFakeRegistry(t)
	if err := read(t, r, other.publish(t, buildHello(t), "v1")); err != nil {
		t.Errorf("another registry: %v", err)
	}
	now = now.Add(time.Hour)
	f.fault = nil
	if err := read(t, r, ref); err != nil {
		t.Errorf("after the time: %v", err)
	}
}

func TestA12Storm(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	var n atomic.Int64
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if n.Add(1)%3 == 0 {
			return false
		}
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	var waited []time.Duration
	r := testRemote(t, func(o *RemoteOptions) {
		o.Sleep = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	})
	if err := read(t, r, ref); err != nil {
		t.Fatal(err)
	}
	for _, d := range waited {
		if d != 2*time.Second {
			t.Errorf("waited %s", d)
		}
	}
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	wantCode(t, read(t, r, ref), ErrRegistryUnavailable)
}

func TestA13SlowRegistry(t *testing.T) {
	tests := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"Headers": func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		},
		"Blob": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			w.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte{0}); err != nil {
					break
				}
				w.(http.Flusher).Flush()
				wait(r.Context(), 5*time.Millisecond)
			}
			return true
		},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeRegistry(t)
			ref := f.publish(t, buildHello(t), "v1")
			f.fault = fault
			r := testRemote(t, func(o *RemoteOptions) { o.Patience, o.MinRate, o.Attempts = 50*time.Millisecond, 1<<30, 1 })
			err := read(t, r, ref)
			wantCode(t, err, ErrRegistryUnavailable)
		})
	}
}

func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

func TestA14LengthLies(t *testing.T) {
	tests := map[string]func(w http.ResponseWriter, data []byte){
		"AnnouncedLonger": func(w http.ResponseWriter, data []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
			_, _ = w.Write(append(data, 0))
		},
		"AnnouncedShorter": func(w http.ResponseWriter, data []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)-1))
			_, _ = w.Write(data[:len(data)-1])
		},
		"LongerWithoutLength": func(w http.ResponseWriter, data []byte) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(append(data, 0))
		},
		"ShorterWithoutLength": func(w http.ResponseWriter, data []byte) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(data[:len(data)-1])
		},
		"Endless": func(w http.ResponseWriter, data []byte) {
			for {
				if _, err := w.Write(data); err != nil {
					return
				}
			}
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeRegistry(t)
			ref := f.publish(t, buildHello(t), "v1")
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				_, hex, found := strings.Cut(r.URL.Path, "/blobs/")
				if found {
					answer(w, append([]byte(nil), f.blobs[MustParseDigest(hex)]...))
				}
				return found
			}
			store := newStore(t)
			_, m, err := fetchYAML(t.Context(), testRemote(t, nil), store, ref)
			wantCode(t, err, ErrSizeMismatch)
			if m.Base != nil && store.Has(m.Base.Digest) {
				t.Error("the store kept the blob")
			}
		})
	}
}

func TestA14EndlessManifest(t *testing.T) {
	f := newFakeRegistry(t)
	f.publish(t, buildHello(t), "v1")
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		w.Header().Set("Content-Type", string(MediaTypeOCIManifest))
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return true
			}
		}
	}
	wantCode(t, read(t, testRemote(t, nil), f.ref("v1")), ErrManifestTooLarge)
}

func TestA15ConnectionBreaks(t *testing.T) {
	big, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(strings.Repeat(helloYAML, 10)), Extra: []ExtraLayer{{Annotation: "noise", Files: []LayerFile{{Path: "x", Data: noise(1 << 16)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	layer := big.manifest.Layers[1]
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprintf("Ranges=%t", ranges), func(t *testing.T) {
			f := newFakeRegistry(t)
			f.Config.ErrorLog = quiet
			ref := f.publish(t, big, "v1")
			var broken atomic.Int64
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, layer.Digest.Hex()) {
					return false
				}
				if !ranges {
					r.Header.Del("Range")
				}
				n := broken.Add(1)
				if n > 50 {
					return false
				}
				cut(w, r, f.blobs[layer.Digest], int(n)*1200)
				return true
			}
			store := newStore(t)
			r := testRemote(t, nil)
			blob, err := r.openBlob(t.Context(), ref, layer)
			if err != nil {
				t.Fatal(err)
			}
			defer blob.Close()
			if err := store.Put(t.Context(), layer.Digest, layer.Size, blob); err != nil {
				t.Fatal(err)
			}
			if broken.Load() <= 50 {
				t.Errorf("the connection broke %d times", broken.Load())
			}
		})
	}
}

// cut serves a blob up to a byte and breaks the connection there.
func cut(w http.ResponseWriter, r *http.Request, data []byte, at int) {
	start := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start); err == nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(data)-1, len(data)))
		w.Header().Set("Content-Length", strconv.Itoa(len(data)-start))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	}
	_, _ = w.Write(data[start:max(start, min(at, len(data)))])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestA15NoProgress(t *testing.T) {
	f := newFakeRegistry(t)
	f.Config.ErrorLog = quiet
	ref := f.publish(t, buildHello(t), "v1")
	var n atomic.Int64
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		n.Add(1)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	wantCode(t, read(t, testRemote(t, nil), ref), ErrRegistryUnavailable)
	if n.Load() > maxStalls+2 {
		t.Errorf("%d attempts", n.Load())
	}
}

func TestA16CaptivePortal(t *testing.T) {
	f := newFakeRegistry(t)
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>please log in</html>")
		return true
	}
	r := testRemote(t, nil)
	wantCode(t, read(t, r, f.ref("v1")), ErrUnexpectedMediaType)
	_, err := r.Tags(t.Context(), f.ref("v1"))
	wantCode(t, err, ErrUnexpectedMediaType)
	wantCode(t, read(t, r, f.ref("v1").WithDigest(DigestOf(nil))), ErrDigestMismatch)
}

func TestA17Tags(t *testing.T) {
	f := newFakeRegistry(t)
	pages := 0
	var link func(page int) string
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		pages++
		if l := link(pages); l != "" {
			w.Header().Set("Link", l)
		}
		_, _ = fmt.Fprintf(w, `{"tags":["v1.0.%d","latest","not a tag","v1.0.%d"]}`, pages, pages)
		return true
	}
	r := testRemote(t, nil)
	list := func(t *testing.T, l func(int) string) ([]string, error) {
		t.Helper()
		pages, link = 0, l
		return r.Tags(t.Context(), f.ref("v1"))
	}
	t.Run("Pages", func(t *testing.T) {
		got, err := list(t, func(page int) string {
			if page == 3 {
				return ""
			}
			return fmt.Sprintf(`</v2/acme/pkg/tags/list?n=1000&last=%d>; rel="next"`, page)
		})
		if err != nil || strings.Join(got, " ") != "latest v1.0.1 v1.0.2 v1.0.3" {
			t.Errorf("%v %v", got, err)
		}
	})
	for name, l := range map[string]func(int) string{
		"Circle":      func(page int) string { return fmt.Sprintf(`<?last=%d>; rel="next"`, page%2) },
		"Endless":     func(page int) string { return fmt.Sprintf(`<?last=%d>; rel="next"`, page) },
		"AnotherHost": func(int) string { return `<https://evil.test/v2/acme/pkg/tags/list>; rel="next"` },
		"AnotherPath": func(int) string { return `</v2/other/tags/list>; rel="next"` },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := list(t, l)
			wantCode(t, err, ErrTagList)
			if pages > maxTagPages {
				t.Errorf("%d pages", pages)
			}
		})
	}
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

func TestA20DigestOutlivesTag(t *testing.T) {
	f := newFakeRegistry(t)
	ref := f.publish(t, buildHello(t), "v1")
	r := testRemote(t, nil)
	planned, err := r.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte("kind: Other\n")})
	if err != nil {
		t.Fatal(err)
	}
	f.publish(t, moved, "v1")
	m, err := r.Fetch(t.Context(), ref.WithDigest(planned.Digest), newStore(t), FetchOptions{})
	if err != nil || m.Digest != planned.Digest {
		t.Errorf("%s %v", m.Digest, err)
	}
	if now, err := r.Resolve(t.Context(), ref); err != nil || now.Digest == planned.Digest {
		t.Errorf("the tag still points to %s (%v)", now.Digest, err)
	}
}

func TestRegistryThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err = read(t, testRemote(t, nil), MustParseReference(host+"/acme/pkg:v1"))
	wantCode(t, err, ErrRegistryUnavailable)
}

func TestTagNotFoundNamesNeighbors(t *testing.T) {
	f := newFakeRegistry(t)
	for _, tag := range []string{"v1.0.0", "v1.1.0", "v2.0.0", "edge"} {
		f.publish(t, buildHello(t), tag)
	}
	err := read(t, testRemote(t, nil), f.ref("v1.0.1"))
	wantCode(t, err, ErrTagNotFound)
	if do := failure.From(err).Do; !strings.Contains(do, "v1.0.0") {
		t.Errorf("advice %q", do)
	}
}

// Requests are what a user waits for, and what registries count.
func TestRequests(t *testing.T) {
	f := newFakeRegistry(t)
	img := buildHello(t)
	ref := f.publish(t, img, "v1")
	r := testRemote(t, nil)
	store := newStore(t)
	if _, _, err := fetchYAML(t.Context(), r, store, ref); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HEAD /v2/acme/pkg/manifests/v1",
		"GET /v2/acme/pkg/manifests/" + img.Digest().String(),
		"GET /v2/acme/pkg/blobs/" + img.manifest.Layers[0].Digest.String(),
	}
	if got := strings.Join(f.requests, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("cold:\n%s", got)
	}
	f.requests = nil
	if _, _, err := fetchYAML(t.Context(), r, store, ref.WithDigest(img.Digest())); err != nil {
		t.Fatal(err)
	}
	if len(f.requests) != 0 {
		t.Errorf("warm: %v", f.requests)
	}
}

func TestCancelledRequest(t *testing.T) {
	f := newFakeRegistry(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err := testRemote(t, nil).Resolve(ctx, f.ref("v1"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
