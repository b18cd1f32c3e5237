package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// Indexer builds the index of a partition.
type Indexer interface {
	// Load returns the last catalog of a partition, and an empty one if there is none.
	Load(ctx context.Context, partition string) (*catalog.Catalog, error)
	// Update returns the catalog of a partition with the given repositories, of which some have changed since the previous
	// catalog, and publishes it. Without a change, the result shares the rows of the previous catalog.
	Update(
		ctx context.Context, partition string, previous *catalog.Catalog, repositories, changed []string,
	) (*catalog.Catalog, error)
}

// SiteOptions configure a site.
type SiteOptions struct {
	// Host is the host in the names of the packages.
	Host string
	// Dir is the folder for caches.
	Dir     string
	Indexer Indexer
	// Repositories lists the repositories, without the host.
	Repositories func(ctx context.Context) ([]string, error)
	Policy       func() *access.Policy
	// Identify returns the sender of a request.
	Identify func(*http.Request) access.Subject
	// Interval is the time between two searches for changes that were not reported. Zero means 45 seconds.
	Interval time.Duration
	Log      *slog.Logger
	Now      func() time.Time
}

// Site is an index of a registry with a search. It updates the index when a repository changes.
type Site struct {
	options SiteOptions
	log     *slog.Logger
	wake    chan struct{}
	// searches has an element for each search that runs.
	searches chan struct{}
	// removeFormer removes the records of former partitions once.
	removeFormer sync.Once

	mu      sync.Mutex
	pending map[string]bool
	all     bool // Every repository has to be checked.
	parts   map[string]*part
	policy  *access.Policy
	ready   bool
	failure error
	updates int
	updated chan struct{} // closed and replaced after each update
}

// Log returns the log of the server.
func (s *Site) Log() *slog.Logger { return s.log }

// part is the index of a partition. It does not change: an update replaces it.
type part struct {
	catalog *catalog.Catalog
	search  *catalog.SearchIndex
	record  *record
}

// published returns the times at which the server first saw the versions of a package, by tag.
func (p *part) published(repository string) map[string]time.Time {
	return p.record.published[repository]
}

// row returns the row of a package with the time at which the server first saw its newest version: authors can state
// any time.
func (p *part) row(of *catalog.Package) catalog.Package {
	row := *of
	if at, known := p.published(row.Repository)[row.Latest]; known {
		row.Updated = at
	}
	return row
}

// mostSearches limits the searches that run at the same time.
const mostSearches = 4

// NewSite returns a site. It does not access the registry or its folder before Run.
func NewSite(o SiteOptions) *Site {
	if o.Interval == 0 {
		o.Interval = 45 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Site{
		options: o, log: o.Log, wake: make(chan struct{}, 1), searches: make(chan struct{}, mostSearches),
		pending: map[string]bool{}, all: true, parts: map[string]*part{}, updated: make(chan struct{}),
	}
}

// Changed schedules the update of a repository. It does not wait.
func (s *Site) Changed(repository string) {
	s.mu.Lock()
	s.pending[repository] = true
	s.mu.Unlock()
	s.signal()
}

// checkAll schedules an update of all repositories. It does not wait.
func (s *Site) checkAll() {
	s.expectChanges()
	s.signal()
}

func (s *Site) expectChanges() {
	s.mu.Lock()
	s.all = true
	s.mu.Unlock()
}

func (s *Site) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // The next update includes the change.
	}
}

// Run keeps the index up to date until the context ends.
func (s *Site) Run(ctx context.Context) error {
	if s.options.Indexer == nil {
		<-ctx.Done()
		return nil
	}
	s.signal()
	ticker := time.NewTicker(s.options.Interval)
	defer ticker.Stop()
	var retry <-chan time.Time // until the first index is ready
	delay := firstRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.expectChanges()
		case <-retry:
		case <-s.wake:
		}
		restore := collectEarly()
		changed, err := s.update(ctx)
		restore()
		if err != nil && ctx.Err() == nil {
			s.log.Error("cannot update the index; the next attempt follows", "error", err)
		}
		s.finish(err)
		if retry = nil; s.Healthy() != nil {
			retry, delay = time.After(delay), min(2*delay, s.options.Interval)
		}
		if changed {
			releaseMemory()
		}
	}
}

// firstRetry is the time after which an update is repeated if the first one failed. It doubles until the first index is
// ready.
const firstRetry = time.Second

// finish records the result of an update.
func (s *Site) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.ready = err, s.ready || err == nil
	s.updates++
	close(s.updated)
	s.updated = make(chan struct{})
}

// Healthy returns an error until the first index is ready.
func (s *Site) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Indexer != nil && !s.ready {
		return errors.Join(ErrServer.New(nil, "the index is not ready"), s.failure)
	}
	return nil
}

// take returns the repositories that have to be updated, and whether all of them have.
func (s *Site) take() (changed []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for repository := range s.pending {
		changed = append(changed, repository)
	}
	all = s.all
	s.pending, s.all = map[string]bool{}, false
	slices.Sort(changed)
	return changed, all
}

// restore schedules a failed update again.
func (s *Site) restore(changed []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, repository := range changed {
		s.pending[repository] = true
	}
	s.all = s.all || all
}

// update updates the partitions with changes. It reports whether the index has changed.
func (s *Site) update(ctx context.Context) (hasChanged bool, err error) {
	changed, all := s.take()
	if len(changed) == 0 && !all {
		return false, nil
	}
	repositories, err := s.options.Repositories(ctx)
	if err != nil {
		s.restore(changed, all)
		return false, err
	}
	if all {
		changed = union(changed, repositories)
	}
	policy := s.options.Policy()
	s.checkPolicy(policy)
	byPartition, changedIn := map[string][]string{}, map[string][]string{}
	for _, repository := range repositories {
		name := policy.Partition(repository)
		byPartition[name] = append(byPartition[name], repository)
	}
	for _, repository := range changed {
		name := policy.Partition(repository)
		changedIn[name] = append(changedIn[name], repository)
	}
	var errs []error
	for _, name := range policy.Partitions() {
		if len(changedIn[name]) == 0 && !all {
			continue
		}
		partHasChanged, err := s.updatePart(ctx, name, byPartition[name], changedIn[name])
		if err != nil {
			errs = append(errs, err)
			s.restore(changedIn[name], all)
		}
		hasChanged = hasChanged || partHasChanged
	}
	s.removeParts(policy.Partitions())
	s.removeFormer.Do(func() { s.removeFormerRecords(policy.Partitions()) })
	return hasChanged, errors.Join(errs...)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// updatePart updates a partition. It reports whether its index has changed.
func (s *Site) updatePart(
	ctx context.Context, name string, repositories, changed []string,
) (hasChanged bool, err error) {
	p := s.part(name)
	if p == nil {
		p = &part{}
		if p.catalog, err = s.options.Indexer.Load(ctx, name); err != nil {
			return false, err
		}
	}
	next, err := s.options.Indexer.Update(ctx, name, p.catalog, repositories, changed)
	if err != nil {
		return false, err
	}
	if p.search != nil && next.SharesRows(p.catalog) {
		s.setPart(name, &part{next, p.search, p.record})
		return false, nil
	}
	record, former := p.record, p.catalog
	if record == nil {
		if record, err = readRecord(s.recordPath(name)); err != nil {
			return false, err
		}
		if next, err = keepRecorded(record, next); err != nil {
			return false, err
		}
		former = &catalog.Catalog{} // The record can be new.
	}
	if record, err = record.write(next, former, name != "", s.options.Now()); err != nil {
		return false, err
	}
	s.setPart(name, &part{next, catalog.NewSearchIndex(next), record})
	return true, nil
}

// recorded returns the packages that a partition had last, also in an earlier process of the server.
func (s *Site) recorded(partition string) (packages []string, err error) {
	var known *record
	if p := s.part(partition); p != nil {
		known = p.record
	} else if known, err = readRecord(s.recordPath(partition)); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(known.published)), nil
}

// keepRecorded returns the first catalog of a process with the recorded content of the packages that cannot be listed,
// such as those in damaged repositories.
func keepRecorded(known *record, next *catalog.Catalog) (*catalog.Catalog, error) {
	unlisted := next.Unlisted()
	if len(unlisted) == 0 {
		return next, nil
	}
	recorded, err := known.entries(unlisted)
	if err != nil {
		return nil, err
	}
	kept := next.Replace(recorded)
	return &kept, nil
}

func (s *Site) setPart(name string, p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[name] = p
}

// removeFormerRecords removes the records of partitions that the policy no longer has. Those of partitions that it
// loses while the server runs stay until the next start, because it can get them back. It also removes the databases of
// servers before records.
func (s *Site) removeFormerRecords(kept []string) {
	names := map[string]bool{}
	for _, partition := range kept {
		names[filepath.Base(s.recordPath(partition))] = true
	}
	entries, err := os.ReadDir(s.options.Dir)
	if err != nil {
		s.log.Warn("cannot look for records of former partitions", "error", err)
		return
	}
	for _, entry := range entries {
		isFormer := strings.HasPrefix(entry.Name(), recordPrefix) || strings.HasPrefix(entry.Name(), formerDatabasePrefix)
		if !isFormer || names[entry.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.options.Dir, entry.Name())); err != nil {
			s.log.Warn("cannot remove the record of a former partition", "name", entry.Name(), "error", err)
		}
	}
}

// recordPrefix is the beginning of the names of records, and formerDatabasePrefix that of the files that servers had
// before.
const recordPrefix, formerDatabasePrefix = "record-", "search-"

// recordPath returns the folder with the record of a partition.
func (s *Site) recordPath(partition string) string {
	sum := sha256.Sum256([]byte(partition))
	return filepath.Join(s.options.Dir, recordPrefix+hex.EncodeToString(sum[:8]))
}

func (s *Site) part(name string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[name]
}

// removeParts drops the partitions that the policy no longer has.
func (s *Site) removeParts(kept []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.parts, func(name string, _ *part) bool { return !slices.Contains(kept, name) })
}

// checkPolicy schedules an update of everything after a change of the policy, which can move packages to other
// partitions.
func (s *Site) checkPolicy(policy *access.Policy) {
	s.mu.Lock()
	changed := s.policy != nil && s.policy != policy
	s.policy = policy
	s.all = s.all || changed
	s.mu.Unlock()
	if changed {
		s.signal()
	}
}

// visible returns the partitions of which a subject may read something, the public one first.
func (s *Site) visible(subject access.Subject) []*part {
	policy := s.options.Policy()
	s.checkPolicy(policy)
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []*part
	for _, name := range policy.Partitions() {
		if p := s.parts[name]; p != nil && (name == "" || !subject.IsAnonymous()) {
			parts = append(parts, p)
		}
	}
	return parts
}

// Path returns the repository of a package without the host, and false for a package of another host.
func (s *Site) Path(repository string) (string, bool) {
	return strings.CutPrefix(repository, s.options.Host+"/")
}

// Updated returns a channel that is closed after the next update of the index, and the number of updates so far.
func (s *Site) Updated() (next <-chan struct{}, updates int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updated, s.updates
}
