package oci

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrForbiddenAddress is the failure of a registry that sends its client to an
// address inside of the client's own network.
var ErrForbiddenAddress = failure.Register(failure.Code{
	Name: "ForbiddenAddress", Class: failure.Untrusted,
	Cause: "A registry on the public network answered with the address of a token server or of content that lies on this machine or in a private network.",
	Fix:   "Do not trust the registry. If the address is right, configure its host as a registry of its own.",
})

// network is the kind of network that an address belongs to.
type network int

const (
	publicNetwork network = iota
	privateNetwork
	linkLocalNetwork
	loopbackNetwork
	noNetwork
)

// Networks that the standard library does not call private and that are not
// public either (RFC 6890).
var (
	sharedNetworks = []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("fec0::/10"),
	}
	unusable = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4")}
	// An IPv4 address can hide in an IPv6 address of these.
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixToFo = netip.MustParsePrefix("2002::/16")
)

// networkOf tells what an address can reach.
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

// mayReach reports whether a registry in one network can send its client to an
// address in another one: outwards always, and sideways.
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

// guard dials for one registry. The registry itself may be anywhere, since its
// user named it; where it sends its client is checked against the addresses that
// are really connected to, so that a name which resolves to something else the
// second time gains nothing.
type guard struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	mu      sync.Mutex
	home    network
	proxies map[string]bool
}

func newGuard(opts *RemoteOptions, host string) *guard {
	g := &guard{dial: opts.Dial, lookup: opts.Lookup, proxies: map[string]bool{}}
	if g.dial == nil {
		g.dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if addr, err := netip.ParseAddr(hostname(host)); err == nil {
		g.home = networkOf(addr)
	} else if isLoopbackHost(host) {
		g.home = loopbackNetwork
	}
	return g
}

// proxy remembers the proxies that the user configured, which may be anywhere.
func (g *guard) proxy(choose func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(req *http.Request) (*url.URL, error) {
		u, err := choose(req)
		if err == nil && u != nil {
			g.mu.Lock()
			g.proxies[addressOf(u)] = true
			g.mu.Unlock()
		}
		return u, err
	}
}

// dialHome connects to the registry itself and learns which network it is in.
func (g *guard) dialHome(ctx context.Context, netw, address string) (net.Conn, error) {
	var conn net.Conn
	var err error
	if g.lookup == nil {
		conn, err = g.dial(ctx, netw, address)
	} else {
		conn, err = g.dialAny(ctx, netw, address, func(netip.Addr) bool { return true })
	}
	if err != nil || g.isProxy(address) {
		return conn, err
	}
	if peer, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		if addr, ok := netip.AddrFromSlice(peer.IP); ok {
			g.mu.Lock()
			g.home = networkOf(addr)
			g.mu.Unlock()
		}
	}
	return conn, nil
}

// dialOther connects to a host that the registry named.
func (g *guard) dialOther(ctx context.Context, netw, address string) (net.Conn, error) {
	if g.isProxy(address) {
		return g.dial(ctx, netw, address)
	}
	return g.dialAny(ctx, netw, address, g.allows)
}

func (g *guard) allows(addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.home.mayReach(networkOf(addr))
}

func (g *guard) isProxy(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[address]
}

// dialAny connects to the first address of a host that is allowed and answers.
func (g *guard) dialAny(ctx context.Context, netw, address string, allowed func(netip.Addr) bool) (net.Conn, error) {
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
			return nil, ErrForbiddenAddress.New(nil, "a registry sent its client to %s, which is at %s", host, addr)
		}
		var conn net.Conn
		if conn, err = g.dial(ctx, netw, net.JoinHostPort(addr.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (g *guard) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if g.lookup != nil {
		return g.lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// checkURL refuses addresses that are written out in a URL, for transports that
// do not dial by way of the guard.
func (g *guard) checkURL(u *url.URL) error {
	addr, err := netip.ParseAddr(u.Hostname())
	if err == nil && !g.allows(addr) {
		return ErrForbiddenAddress.New(nil, "a registry sent its client to %s", addr)
	}
	if err != nil && isLoopbackHost(u.Hostname()) && !g.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return ErrForbiddenAddress.New(nil, "a registry sent its client to %s", u.Hostname())
	}
	return nil
}

// addressOf is the host and port that a URL is reached at.
func addressOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
