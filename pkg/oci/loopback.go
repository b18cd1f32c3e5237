package oci

import (
	"net/netip"
	"net/url"
	"strings"
)

// IsLoopback reports whether a host, with or without a port, names this machine: localhost, a name below it, or an
// address of the loopback interface. Requests to it never leave the machine.
func IsLoopback(host string) bool {
	name := host
	if _, err := netip.ParseAddr(host); err != nil {
		name = (&url.URL{Host: host}).Hostname()
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
