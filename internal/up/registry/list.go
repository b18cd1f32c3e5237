package registry

import (
	"net/http"
	"strings"
)

const listPath = "/v2/_catalog"

// withList serves the list of the repositories beside the API of the images, which has none.
func withList(o Options, images http.Handler) http.Handler {
	if o.Repositories == nil {
		return images
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.TrimSuffix(r.URL.Path, "/") == listPath {
			o.Repositories.ServeHTTP(w, r)
			return
		}
		images.ServeHTTP(w, r)
	})
}
