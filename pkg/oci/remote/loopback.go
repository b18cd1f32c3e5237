package remote

import (
	"net/netip"
	"net/url"
	"strings"
)

// hostname returns a registry host without its port and brackets.
func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }

// isLoopbackHost reports whether a host names this machine. Requests to it use HTTP
// unless the host is configured, because they never leave the machine.
func isLoopbackHost(host string) bool {
	name := hostname(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
