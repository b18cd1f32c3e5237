package env

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// Dials counts connections by address.
type Dials struct {
	mu  sync.Mutex
	all map[string]int
}

// Dial counts a connection to an address, and connects.
func (d *Dials) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	if d.all == nil {
		d.all = map[string]int{}
	}
	d.all[address]++
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

// To returns the number of connections to an address, or to all addresses if it is empty.
func (d *Dials) To(address string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if address != "" {
		return d.all[address]
	}
	n := 0
	for _, more := range d.all {
		n += more
	}
	return n
}

// Unresolvable is a resolver that finds no name, so that no request leaves the machine.
func Unresolvable(_ context.Context, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
