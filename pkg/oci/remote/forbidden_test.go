package remote

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

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// publicRegistry is a registry with a host name and an address that the client takes for
// public.
type publicRegistry struct {
	*ocitest.Registry
	name string
	// dialed are the addresses that were connected to.
	dialed atomic.Value
}

// publicConn pretends to have a public peer.
type publicConn struct{ net.Conn }

func (publicConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 443} }

// startPublic serves a registry as https://registry.acme.test.
func startPublic(t *testing.T, names map[string][]string) (*publicRegistry, *Client) {
	t.Helper()
	f := ocitest.NewUnstartedRegistry(t)
	f.Config.ErrorLog = ocitest.Quiet
	f.StartTLS()
	p := &publicRegistry{Registry: f, name: "example.com"}
	var flips atomic.Int64
	r := testRemote(t, func(o *Options) {
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
			conn, err := (&net.Dialer{}).DialContext(ctx, network, f.Host())
			return publicConn{conn}, err
		}
		o.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	})
	return p, r
}

func (p *publicRegistry) ref(tag string) oci.Reference {
	return oci.MustParseReference(p.name + "/acme/pkg:" + tag)
}

// hardening: A6, A7
func TestForbiddenRealm(t *testing.T) {
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
			p.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=x", realm))
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			err := read(t, r, p.ref("v1"))
			if realm == "file:///etc/passwd" {
				ocitest.WantCode(t, err, ErrUnauthorized)
			} else {
				ocitest.WantCode(t, err, ErrForbiddenAddress)
			}
			if got := p.dialed.Load(); got != "203.0.113.5:443" {
				t.Errorf("connected to %v", got)
			}
		})
	}
}

// hardening: A7
func TestForbiddenRedirect(t *testing.T) {
	names := map[string][]string{"cdn.acme.test": {"192.168.1.1"}}
	for _, location := range []string{
		"https://cdn.acme.test/x", "https://10.1.2.3/x", "https://127.0.0.1:1/x", "http://cdn.acme.test/x",
		"ftp://cdn.acme.test/x", "https:///x",
	} {
		t.Run(location, func(t *testing.T) {
			p, r := startPublic(t, names)
			p.Publish(t, ocitest.Hello(t), "v1")
			p.Fault = func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/blobs/") {
					return false
				}
				http.Redirect(w, req, location, http.StatusTemporaryRedirect)
				return true
			}
			ocitest.WantCode(t, read(t, r, p.ref("v1")), ErrForbiddenAddress)
		})
	}
}

// A registry on this machine or in a private network may use neighbors.
//
// hardening: A6
func TestLocalRegistryMayUseLocalTokenServer(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"good"}`)
	}))
	t.Cleanup(tokens.Close)
	f.Fault = wantBearer("good", tokens.URL)
	if err := read(t, testRemote(t, nil), ref); err != nil {
		t.Fatal(err)
	}
}

// hardening: A6
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
