package registry

import (
	"net"
	"net/http"
	"net/netip"
)

// guard rejects the requests that a web page can make a browser send to the loopback interface:
// requests that name another host (DNS rebinding), and requests from another site. Without it, a
// web page could read private content.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || !isLoopback(r.Host) {
			writeError(w, http.StatusForbidden, codeDenied, "this registry serves only clients on its own machine, and no web pages")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
