package registry

import "github.com/xpkg-dev/xpkg/pkg/catalog"

// CheckAll schedules an update of all repositories, as the site does at each interval.
func (s *Site) CheckAll() { s.checkAll() }

// Catalog returns the index of a partition.
func (s *Site) Catalog(partition string) *catalog.Catalog { return s.part(partition).catalog }

// CloseSearch closes the search database of a partition, so that an update that writes to it fails.
func (s *Site) CloseSearch(partition string) error { return s.part(partition).search.Close() }

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
