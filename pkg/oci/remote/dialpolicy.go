package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrForbiddenAddress is the code for a registry that refers its client to an address
// in the client's private network.
var ErrForbiddenAddress = errcode.Code{
	Name: "ForbiddenAddress", Class: errcode.Untrusted,
	Cause: "A registry in the public network referred to a token server or content on this machine or in a private network.",
	Fix:   "Do not trust the registry. If the address is right, add its host to the configured registries.",
}

// network is the kind of network that an address belongs to.
type network int

const (
	publicNetwork network = iota
	privateNetwork
	linkLocalNetwork
	loopbackNetwork
	noNetwork
)

// nonPublic lists further networks that are not public (RFC 6890); the standard library
// does not classify them as private.
var (
	sharedNetworks = []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("fec0::/10"),
	}
	unusable = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4")}
	// nat64 lists networks whose IPv6 addresses contain an IPv4 address.
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixToFo = netip.MustParsePrefix("2002::/16")
)

// networkOf returns the kind of network of an address.
func networkOf(addr netip.Addr) network {
	addr = embedded(addr.Unmap())
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast(), within(addr, unusable):
		return noNetwork
	case addr.IsLoopback():
		return loopbackNetwork
	case addr.IsLinkLocalUnicast():
		return linkLocalNetwork
	case addr.IsPrivate(), within(addr, sharedNetworks):
		return privateNetwork
	}
	return publicNetwork
}

func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFo.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// mayReach reports whether a registry in one network can refer its client to an address
// in another one: in the same network or in a more public one.
func (home network) mayReach(target network) bool {
	switch target {
	case publicNetwork:
		return true
	case privateNetwork:
		return home == privateNetwork || home == loopbackNetwork
	case loopbackNetwork, linkLocalNetwork:
		return home == target
	}
	return false
}

// dialPolicy restricts connections to one registry and to the hosts in its responses. The
// registry may be in any network, because the user named it. A host that the registry
// names is checked against the registry's network at connection time, so a name that
// later resolves to another address does not bypass the check.
//
// The registry's network is learned from connections that can carry a request; with
// HTTPS, after the certificate of the host is verified. A name that resolves to a
// loopback address without that certificate therefore does not change it. Once learned,
// it only changes to a more public network.
//
// Behind a proxy the connection addresses belong to the proxy. Nothing is learned from
// such a connection, the registry counts as public unless its name is a private address,
// and a host that it names is checked only if the URL contains an address.
type dialPolicy struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// choose returns the proxy of a request, or nil.
	choose func(*http.Request) (*url.URL, error)

	mu sync.Mutex
	// home is the network of the registry, public until it is learned.
	home    network
	learned bool
	proxies map[string]bool
}

func newDialPolicy(opts *Options, host string) *dialPolicy {
	g := &dialPolicy{dial: opts.Dial, lookup: opts.Lookup, choose: opts.Proxy, proxies: map[string]bool{}}
	if g.dial == nil {
		g.dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if addr, err := netip.ParseAddr((&url.URL{Host: host}).Hostname()); err == nil {
		g.learn(networkOf(addr))
	} else if oci.IsLoopback(host) {
		g.learn(loopbackNetwork)
	}
	return g
}

// learn records that the registry responded in a network.
func (g *dialPolicy) learn(n network) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.learned || n < g.home {
		g.home, g.learned = n, true
	}
}

// proxy returns the proxy of a request. The user configured it, so its address is not
// checked.
func (g *dialPolicy) proxy(req *http.Request) (*url.URL, error) {
	if g.choose == nil {
		return nil, nil
	}
	u, err := g.choose(req)
	if err == nil && u != nil {
		g.mu.Lock()
		g.proxies[addressOf(u)] = true
		g.mu.Unlock()
	}
	return u, err
}

// dialHome connects to the registry itself.
func (g *dialPolicy) dialHome(ctx context.Context, netw, address string) (net.Conn, error) {
	if g.lookup == nil || g.isProxy(address) {
		return g.dial(ctx, netw, address)
	}
	return g.dialAny(ctx, netw, address, func(netip.Addr) bool { return true })
}

// learningTransport sends requests to the registry and lets the policy learn the
// network of its connections.
type learningTransport struct {
	*http.Transport
	policy *dialPolicy
}

// RoundTrip implements [http.RoundTripper].
func (t learningTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if u, err := t.policy.proxy(req); err != nil || u != nil {
		return t.Transport.RoundTrip(req)
	}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if peer, ok := info.Conn.RemoteAddr().(*net.TCPAddr); ok {
			if addr, ok := netip.AddrFromSlice(peer.IP); ok {
				t.policy.learn(networkOf(addr))
			}
		}
	}}
	return t.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// dialOther connects to a host that the registry named.
func (g *dialPolicy) dialOther(ctx context.Context, netw, address string) (net.Conn, error) {
	if g.isProxy(address) {
		return g.dial(ctx, netw, address)
	}
	return g.dialAny(ctx, netw, address, g.allows)
}

func (g *dialPolicy) allows(addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.home.mayReach(networkOf(addr))
}

func (g *dialPolicy) isProxy(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[address]
}

// dialAny connects to the first allowed address of a host that accepts a connection.
func (g *dialPolicy) dialAny(
	ctx context.Context, netw, address string, allowed func(netip.Addr) bool,
) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s has no address", host)
	for _, addr := range addrs {
		if !allowed(addr) {
			return nil, ErrForbiddenAddress.New(nil, "a registry referred its client to %s, which is at %s", host, addr)
		}
		var conn net.Conn
		if conn, err = g.dial(ctx, netw, net.JoinHostPort(addr.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (g *dialPolicy) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if g.lookup != nil {
		return g.lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// checkURL rejects URLs that contain a forbidden address, for transports that do not use
// the dial functions of the policy.
func (g *dialPolicy) checkURL(u *url.URL) error {
	addr, err := netip.ParseAddr(u.Hostname())
	if err == nil && !g.allows(addr) {
		return ErrForbiddenAddress.New(nil, "a registry referred its client to %s", addr)
	}
	if err != nil && oci.IsLoopback(u.Hostname()) && !g.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return ErrForbiddenAddress.New(nil, "a registry referred its client to %s", u.Hostname())
	}
	return nil
}

// addressOf returns the host and port of a URL.
func addressOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
