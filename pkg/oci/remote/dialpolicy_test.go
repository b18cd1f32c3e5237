package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// A name that resolves to a forbidden address is refused, whatever other addresses it
// has, and connections go only to checked addresses.
//
// hardening: A7
func TestDialPolicyConnectsToCheckedAddress(t *testing.T) {
	unreachable := errors.New("unreachable")
	tests := map[string]struct {
		addrs  []string
		dialed []string
		want   bool
	}{
		"Public":        {[]string{"198.51.100.1"}, []string{"198.51.100.1:443"}, false},
		"Forbidden":     {[]string{"10.0.0.1"}, nil, true},
		"SecondIsInner": {[]string{"198.51.100.1", "127.0.0.1"}, []string{"198.51.100.1:443"}, true},
		"Mapped":        {[]string{"::ffff:169.254.169.254"}, nil, true},
		"None":          {nil, nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lookups := 0
			var dialed []string
			g := newDialPolicy(&Options{
				Lookup: func(context.Context, string) ([]netip.Addr, error) {
					lookups++
					var addrs []netip.Addr
					for _, a := range tc.addrs {
						addrs = append(addrs, netip.MustParseAddr(a))
					}
					return addrs, nil
				},
				Dial: func(_ context.Context, _, address string) (net.Conn, error) {
					dialed = append(dialed, address)
					return nil, unreachable
				},
			}, "registry.example.com")
			_, err := g.dialOther(t.Context(), "tcp", "cdn.example.com:443")
			if err == nil || errors.Is(err, ErrForbiddenAddress) != tc.want {
				t.Errorf("%v", err)
			}
			if len(dialed) != len(tc.dialed) || (len(dialed) > 0 && dialed[0] != tc.dialed[0]) {
				t.Errorf("connected to %v", dialed)
			}
			if lookups != 1 {
				t.Errorf("the name was resolved %d times", lookups)
			}
		})
	}
}

func TestGuardHome(t *testing.T) {
	for host, want := range map[string]network{
		"registry.example.com": publicNetwork, "127.0.0.1:5000": loopbackNetwork, "localhost:5000": loopbackNetwork,
		"[::1]:5000": loopbackNetwork, "10.0.0.1": privateNetwork, "registry.localhost": loopbackNetwork,
		"169.254.0.1": linkLocalNetwork,
	} {
		if got := newDialPolicy(&Options{}, host).home; got != want {
			t.Errorf("%s is in network %d, want %d", host, got, want)
		}
	}
}

// A registry whose name resolves to this machine later cannot send its client there:
// the connection has no certificate of the registry.
//
// hardening: A7
func TestConnectionWithoutTheCertificateKeepsTheRegistryPublic(t *testing.T) {
	f := ocitest.NewUnstartedRegistry(t)
	f.Config.ErrorLog = ocitest.Quiet
	f.StartTLS()
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://127.0.0.1/token",service=x`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	// What listens on this machine has another certificate.
	local := httptest.NewUnstartedServer(http.NotFoundHandler())
	local.Config.ErrorLog = ocitest.Quiet
	// A server that the client refuses.
	local.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	local.StartTLS()
	t.Cleanup(local.Close)
	rebound := false
	r := testRemote(t, func(o *Options) {
		o.Attempts = 1
		o.Hosts = map[string]HostOptions{"example.com": trusted(f.Server)}
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.5")}, nil
		}
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			if rebound {
				return (&net.Dialer{}).DialContext(ctx, network, local.Listener.Addr().String())
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, f.Host())
			return publicConn{conn}, err
		}
		o.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	})
	ref := oci.MustParseReference("example.com/acme/pkg:v1")
	rebound = true
	if err := read(t, r, ref); !errors.Is(err, ErrTLSUntrusted) {
		t.Fatalf("got %v, want a failure of TLS", err)
	}
	rebound = false
	ocitest.WantCode(t, read(t, r, ref), ErrForbiddenAddress)
}

func TestNetworkOnlyBecomesMorePublic(t *testing.T) {
	g := newDialPolicy(&Options{}, "registry.example.com")
	for _, step := range []struct{ seen, want network }{
		{privateNetwork, privateNetwork}, {loopbackNetwork, privateNetwork}, {publicNetwork, publicNetwork},
		{privateNetwork, publicNetwork},
	} {
		g.learn(step.seen)
		if g.home != step.want {
			t.Errorf("after a connection in network %d the registry is in network %d, want %d", step.seen, g.home, step.want)
		}
	}
}

// Behind a proxy on this machine a registry still counts as public.
//
// hardening: A18
func TestRegistryBehindALocalProxyIsPublic(t *testing.T) {
	registry := ocitest.NewRegistry(t)
	registry.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://127.0.0.1:1/token",service=x`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	proxy, err := url.Parse(registry.URL)
	ocitest.Must(t, err)
	r := testRemote(t, func(o *Options) {
		o.Hosts = map[string]HostOptions{"registry.acme.test": {PlainHTTP: true}}
		o.Proxy = func(*http.Request) (*url.URL, error) { return proxy, nil }
	})
	ref := oci.MustParseReference("registry.acme.test/acme/pkg:v1")
	ocitest.WantCode(t, read(t, r, ref), ErrForbiddenAddress)
}
