package registry

import (
	"net/http"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

const (
	searchPath = "/api/v1/search"
	// mostHits is the maximum number of hits in a response.
	mostHits = 200
)

// searchHit is a hit in a response.
type searchHit struct {
	Kind       string   `json:"kind,omitempty"`
	Group      string   `json:"group,omitempty"`
	Versions   []string `json:"versions,omitempty"`
	Repository string   `json:"repository"`
	Latest     string   `json:"latest,omitempty"`
	Type       string   `json:"type,omitempty"`
	Title      string   `json:"title,omitempty"`
	Why        string   `json:"why"`
}

// serveSearch serves a search as JSON, for a server without pages.
func (s *Server) serveSearch(w http.ResponseWriter, r *http.Request) {
	if !protocol.IsRead(r) {
		protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "search with GET")
		return
	}
	query, err := catalog.ParseQuery(r.URL.Query().Get("q"))
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit <= 0 || limit > mostHits {
		limit = mostHits
	}
	found, err := s.site.ViewOf(r).Search(r.Context(), query, limit)
	if err != nil {
		s.log.Error("cannot search", "error", err)
		protocol.WriteError(w, r, http.StatusServiceUnavailable, protocol.CodeUnsupported, "the search does not work now")
		return
	}
	hits := []searchHit{}
	for _, h := range found {
		hit := searchHit{
			Repository: h.Package.Repository, Latest: h.Package.Latest, Type: h.Package.Type, Title: h.Package.Title, Why: h.Why,
		}
		if h.Kind != nil {
			hit.Kind, hit.Group, hit.Versions = h.Kind.Kind, h.Kind.Group, h.Kind.Served
		}
		hits = append(hits, hit)
	}
	protocol.WriteJSON(w, r, http.StatusOK, map[string]any{"hits": hits})
}
