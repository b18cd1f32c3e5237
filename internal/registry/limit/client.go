package limit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Client is a sender of requests.
type Client struct {
	// Key identifies the client.
	Key string
	// IsAnonymous means that the client has no valid credentials.
	IsAnonymous bool
}

// User returns the client of a user or another identity with valid credentials.
func User(name string) Client { return Client{Key: "user " + name} }

// Address returns the client of a request without valid credentials: its address. Behind a proxy, that is the one which
// the proxy has added to the header X-Forwarded-For.
func Address(r *http.Request, isBehindProxy bool) Client {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if forwarded := r.Header.Values("X-Forwarded-For"); isBehindProxy && len(forwarded) > 0 {
		last := forwarded[len(forwarded)-1]
		host = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	}
	return Client{Key: "address " + network(host), IsAnonymous: true}
}

// network returns the network of one client: an IPv4 address, or the first 64 bits of an IPv6 address.
func network(host string) string {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return "unknown"
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	const bits = 64
	prefix, err := address.Prefix(bits)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}

type clientKey struct{}

// WithClient returns a context for requests of a client.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf returns the client of a context; the server itself has none.
func ClientOf(ctx context.Context) (Client, bool) {
	c, ok := ctx.Value(clientKey{}).(Client)
	return c, ok
}
