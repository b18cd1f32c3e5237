package up

import (
	"net"
	"net/http"
	"net/netip"
)

// guard refuses what a web page can make a browser send to the loopback interface:
// requests that name another host (DNS rebinding), and requests from another site.
// The registry has no passwords, so that would be enough to change its images.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || !isLoopback(r.Host) {
			http.Error(w, "this registry serves clients on its own machine only", http.StatusForbidden)
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
