package registry

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// CheckAll schedules an update of all repositories, as the site does at each interval.
func (s *Site) CheckAll() { s.checkAll() }

// MostCompared is the number of tags of a repository that a round compares.
const MostCompared = mostCompared

// CompareTags compares the digests of the next tags of each repository with those of the backend, as the server does at
// each interval.
func (s *Server) CompareTags(ctx context.Context) {
	s.options.Indexer.(*LocalIndexer).compareTags(ctx, s.site.Changed)
}

// Catalog returns the index of a partition.
func (s *Site) Catalog(partition string) *catalog.Catalog { return s.part(partition).catalog }

// RecordPath returns the folder with the record of a partition.
func (s *Site) RecordPath(partition string) string { return s.recordPath(partition) }

// Failure returns the error of the last update.
func (s *Site) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// PublishedSharesRows reports whether the published index uses the memory of the index of the site.
func (s *Server) PublishedSharesRows() bool {
	x := s.options.Indexer.(*LocalIndexer)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.publication.content.SharesRows(s.site.Catalog(""))
}

// RefuseDeletions refuses the deletions of the server itself, as a backend without deletions does.
func (s *Server) RefuseDeletions() {
	next := s.packages.requests.handler
	s.packages.requests.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			protocol.WriteError(w, r, http.StatusMethodNotAllowed, protocol.CodeUnsupported, "deletions are disabled")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SetPolicyClock sets the time that decides when the file with the policy is read again.
func (s *Server) SetPolicyClock(now func() time.Time) { s.policies.now = now }

// CurrentIndexIsChecked reports whether the server knows the packages in the current state of its index that are not
// public.
func (s *Server) CurrentIndexIsChecked(t testing.TB) bool {
	t.Helper()
	d, err := s.images.digest(t.Context(), indexRepository, indexTag)
	if err != nil {
		t.Fatal(err)
	}
	_, ok := s.indexGuard.known(s.policy(), d)
	return ok
}

// LockRepository prevents changes of a repository until unlock is called.
func (s *Server) LockRepository(t testing.TB, repository string) (unlock func()) {
	t.Helper()
	unlock, err := s.changing.Lock(t.Context(), access.Fold(repository))
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// CollectGarbage collects the garbage of all repositories.
func (s *Server) CollectGarbage(ctx context.Context) { s.images.(*folder).store.Collect(ctx) }
