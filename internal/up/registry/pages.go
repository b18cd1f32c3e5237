package registry

import (
	"net/http"
	"strings"
)

// withPages serves the pages beside the API of the registry.
func withPages(o Options, api http.Handler) http.Handler {
	if o.Pages == nil {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath || isAPI(r.URL.Path) || !isRead(r) {
			api.ServeHTTP(w, r)
			return
		}
		o.Pages.ServeHTTP(w, r)
	})
}

func isAPI(path string) bool {
	return path == strings.TrimSuffix(pingPath, "/") || strings.HasPrefix(path, pingPath)
}

// notify reports the repositories that change.
func notify(o Options, next http.Handler) http.Handler {
	if o.Changed == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		name, ok := repositoryOf(r.URL.Path)
		if ok && !isRead(r) && strings.Contains(r.URL.Path, "/manifests/") {
			o.Changed(name)
		}
	})
}
