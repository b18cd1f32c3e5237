package untrusted

import (
	"net/url"
	"strings"
)

// Rel is the relation of links to addresses that package authors chose.
const Rel = "nofollow noopener ugc"

// maxLink is the maximum length of an address.
const maxLink = 2000

// Link returns the address if it is an absolute address with the scheme http, https or mailto, and "" otherwise.
func Link(address string) string {
	address = strings.TrimSpace(address)
	if len(address) > maxLink ||
		strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https":
		if u.Host == "" {
			return ""
		}
	case "mailto":
		if u.Opaque == "" || u.RawQuery != "" {
			return ""
		}
	default:
		return ""
	}
	return u.String()
}
