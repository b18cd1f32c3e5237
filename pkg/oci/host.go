package oci

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// canonicalHost returns the canonical spelling of a registry's host: lower case,
// international names in punycode, no trailing dot, the port as written. Different
// spellings of a host therefore identify the same registry, and similar hosts never do.
func canonicalHost(host string) (string, error) {
	name, port, err := splitPort(host)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "[") {
		return canonicalIPv6(name, port)
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", fmt.Errorf("the registry %q has no host", host)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String() + port, nil
	}
	if isHostName(name) && !strings.Contains(name, "--") {
		return qualified(host, name+port) // It is canonical. References are compared often, and IDNA is slow.
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return "", fmt.Errorf("the registry %q is not a host name: %w", host, err)
	}
	// Canonicalization must be idempotent. Otherwise other readers could interpret the
	// name as a different host.
	again, err := idna.Lookup.ToASCII(ascii)
	if err != nil || again != ascii || !utf8.ValidString(name) || !isHostName(ascii) {
		return "", fmt.Errorf("the registry %q is not a host name", host)
	}
	return qualified(host, ascii+port)
}

// qualified returns the canonical form of a host, unless it could be the first part of a repository.
func qualified(host, canonical string) (string, error) {
	if !looksLikeRegistry(canonical) {
		return "", fmt.Errorf("the registry %q needs a dot or a port, to be distinguished from a repository", host)
	}
	return canonical, nil
}

// splitPort splits off ":port", including the colon.
func splitPort(host string) (name, port string, err error) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") {
		return host, "", nil
	}
	number, err := strconv.ParseUint(host[i+1:], 10, 16)
	if err != nil || number == 0 || strconv.FormatUint(number, 10) != host[i+1:] {
		return "", "", fmt.Errorf("the registry %q has no valid port after the colon", host)
	}
	return host[:i], host[i:], nil
}

func canonicalIPv6(name, port string) (string, error) {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(name, "["), "]")
	addr, err := netip.ParseAddr(inner)
	if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", fmt.Errorf("the registry %q is not an IPv6 address in brackets", name)
	}
	return "[" + addr.String() + "]" + port, nil
}

// isHostName applies the grammar of RFC 1123.
func isHostName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool { return !isLowerAlnum(r) && r != '-' }) {
			return false
		}
	}
	return true
}
