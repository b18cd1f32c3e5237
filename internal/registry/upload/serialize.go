package upload

import (
	"net/http"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
)

// Serialize returns a handler that forwards changes of the manifests of one repository one after another, and all other
// requests at once. olareg v0.1.2 loses entries of its lists of referrers if several referrers are pushed at once.
func Serialize(next http.Handler) http.Handler {
	changing := &keyedmutex.Mutex[string]{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repository, _, isManifest := strings.Cut(r.URL.Path, "/manifests/")
		if !isManifest || r.Method != http.MethodPut && r.Method != http.MethodDelete {
			next.ServeHTTP(w, r)
			return
		}
		unlock, err := changing.Lock(r.Context(), repository)
		if err != nil {
			panic(http.ErrAbortHandler) // The client has disconnected. Without it, the response would be 200.
		}
		defer unlock()
		next.ServeHTTP(w, r)
	})
}
