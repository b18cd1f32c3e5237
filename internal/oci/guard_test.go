package oci

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

// A name that resolves to a forbidden address is refused, whatever else it
// resolves to, and only addresses that were checked are connected to.
func TestA07GuardConnectsToWhatItChecked(t *testing.T) {
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
			g := newGuard(&RemoteOptions{
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
			if err == nil || ErrForbiddenAddress.Is(err) != tc.want {
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
		"[::1]:5000": loopbackNetwork, "10.0.0.1": privateNetwork, "registry.localhost": loopbackNetwork, "169.254.0.1": linkLocalNetwork,
	} {
		if got := newGuard(&RemoteOptions{}, host).home; got != want {
			t.Errorf("%s is in network %d, want %d", host, got, want)
		}
	}
}
