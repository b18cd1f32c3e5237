package registry

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// mostListed is the maximum number of repositories in one response.
const mostListed = 1000

// RepositoryList serves the names of the repositories of a registry ("/v2/_catalog" of CNCF distribution), so that an
// index can be built from the registry.
type RepositoryList struct {
	// Repositories returns the names of all repositories, sorted.
	Repositories func(ctx context.Context) ([]string, error)
	// MayRead reports whether the client may read a repository. Nil means that it may read all.
	MayRead func(repository string) bool
	Log     *slog.Logger
}

// NewLocalList returns the list of the repositories in a store, all of which every client may read.
func NewLocalList(store *storage.Store, log *slog.Logger) RepositoryList {
	return RepositoryList{
		Repositories: func(ctx context.Context) ([]string, error) { return repositoriesIn(ctx, store) }, Log: log,
	}
}

// ServeHTTP implements [http.Handler].
func (l RepositoryList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !protocol.IsRead(r) {
		protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "the method is not allowed")
		return
	}
	all, err := l.Repositories(r.Context())
	if err != nil {
		l.Log.Error("cannot list the repositories", "error", err)
		protocol.WriteError(
			w, r, http.StatusServiceUnavailable, protocol.CodeUnsupported, "the repositories cannot be listed now",
		)
		return
	}
	last := r.URL.Query().Get("last")
	visible := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return name <= last || l.MayRead != nil && !l.MayRead(name)
	})
	count, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || count <= 0 || count > mostListed {
		count = mostListed
	}
	if len(visible) > count {
		visible = visible[:count]
		next := url.Values{"n": {strconv.Itoa(count)}, "last": {visible[count-1]}}
		w.Header().Set("Link", "<"+protocol.Root+"_catalog?"+next.Encode()+`>; rel="next"`)
	}
	if visible == nil {
		visible = []string{}
	}
	protocol.WriteJSON(w, r, http.StatusOK, map[string]any{"repositories": visible})
}

// listRepositories lists the repositories that a subject may read.
func (s *Server) listRepositories(w http.ResponseWriter, r *http.Request, subject access.Subject) {
	policy := s.policy()
	RepositoryList{
		Repositories: s.images.repositories, Log: s.log,
		MayRead: func(repository string) bool { return policy.May(subject, repository, access.Read) },
	}.ServeHTTP(w, r)
}
