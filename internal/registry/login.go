package registry

import "github.com/xpkg-dev/xpkg/internal/registry/protocol"

import "net/http"

// LoginPath is the path on which a browser asks its user for credentials. The pages themselves do not ask, because most
// readers have none, and a page that exists for some users only must not differ from one that does not exist.
const LoginPath = "/login"

// serveLogin lets a browser log in with a token of the server: it sends the token to all pages from then on.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !protocol.IsRead(r) {
		w.Header().Set("Allow", http.MethodGet)
		protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "log in with GET")
		return
	}
	if subject, found := s.identifier.subject(r); found != validCredentials || subject.IsAnonymous() {
		w.Header().Set("WWW-Authenticate", `Basic realm="xpkg"`)
		protocol.WriteError(
			w, r, http.StatusUnauthorized, protocol.CodeUnauthorized,
			"log in with any user name, and a token as the password; `xpkg registry token create --help` shows how to create one",
		)
		return
	}
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}
