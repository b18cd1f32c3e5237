package registry

import (
	"net/http"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// guard rejects the requests that a web page can make a browser send to the loopback interface:
// requests that name another host (DNS rebinding), and requests from another site. Without it, a
// web page could read private content.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || !oci.IsLoopback(r.Host) {
			writeError(
				w, http.StatusForbidden, codeDenied, "this registry serves only clients on its own machine, and no web pages",
			)
			return
		}
		next.ServeHTTP(w, r)
	})
}
