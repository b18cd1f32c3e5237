package processruntime

import (
	"net"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// MachineAddress returns an address of this machine that endpoints may have, which is neither
// loopback nor link-local. It prefers IPv4, and returns "" if there is none.
func MachineAddress() string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	other := ""
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP.String()
		}
		other = n.IP.String()
	}
	return other
}

// AddressType returns the type of an address in an EndpointSlice.
func AddressType(address string) discoveryv1.AddressType {
	if net.ParseIP(address).To4() != nil {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}
