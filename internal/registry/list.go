package registry

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

// mostListed is the maximum number of repositories in one response.
const mostListed = 1000

// listRepositories lists the repositories that a subject may read ("/v2/_catalog" of CNCF distribution), so that an index can be
// built from this registry.
func (s *Server) listRepositories(w http.ResponseWriter, r *http.Request, subject access.Subject) {
	if !isRead(r) {
		writeError(w, r, http.StatusMethodNotAllowed, codeUnsupported, "the method is not allowed")
		return
	}
	all, err := s.images.repositories(r.Context())
	if err != nil {
		s.log.Error("cannot list the repositories", "error", err)
		writeError(w, r, http.StatusServiceUnavailable, codeUnsupported, "the repositories cannot be listed now")
		return
	}
	policy, last := s.policy(), r.URL.Query().Get("last")
	visible := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return name <= last || !policy.May(subject, name, access.Read)
	})
	count, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || count <= 0 || count > mostListed {
		count = mostListed
	}
	if len(visible) > count {
		visible = visible[:count]
		next := url.Values{"n": {strconv.Itoa(count)}, "last": {visible[count-1]}}
		w.Header().Set("Link", "<"+apiPath+"_catalog?"+next.Encode()+`>; rel="next"`)
	}
	if visible == nil {
		visible = []string{}
	}
	writeJSON(w, r, http.StatusOK, map[string]any{"repositories": visible})
}
