package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

// Options configure a store.
type Options struct {
	// Every is the time between two collections of garbage; zero collects none.
	Every time.Duration
	// Grace is the time for which new content that nothing refers to, and an unfinished upload, are kept.
	Grace time.Duration
	// Volatile makes no change wait for the disk, for tests: a loss of power loses content.
	Volatile bool
	// Log gets the damage and the faults of the system; nil means none.
	Log *slog.Logger
}

// Store stores the content of a registry in a folder. It is safe for concurrent use.
type Store struct {
	root    string
	options Options
	log     *slog.Logger
	disk    disk
	// changing locks a repository for a change or a collection. Reads need no lock.
	changing keyedmutex.Mutex[string]

	mu sync.Mutex
	// states are the lists of the repositories that were read last, with cached entries in total.
	states map[string]*state
	cached int
	// problems are the errors of repositories that are in the log and have not ended.
	problems map[string]error
	// checked are the results of checks of content.
	checked map[contentKey]contentCheck
	uploads map[string]*Upload
	// collected are the results of collections.
	collected map[string]collected

	collections sync.WaitGroup
	stop        context.CancelFunc
}

// Open opens a folder, which no other process uses. It removes what a killed process has left, and repositories without
// content, and starts the collection of garbage. The log names the damaged repositories.
func Open(root string, o Options) *Store {
	s := &Store{
		root: filepath.Clean(root), options: o, log: o.Log, states: map[string]*state{}, problems: map[string]error{},
		checked: map[contentKey]contentCheck{},
		uploads: map[string]*Upload{}, collected: map[string]collected{},
	}
	s.disk.volatile = o.Volatile
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.removeUnfinished(); err != nil {
		s.log.Warn("cannot remove unfinished uploads", "error", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.checkAll(ctx)
	if o.Every > 0 {
		s.collections.Go(func() { s.collectEvery(ctx) })
	}
	return s
}

// checkAll reads all lists, so that the log names those that are damaged before a client asks for them, and removes
// repositories without content, so that their names are free.
func (s *Store) checkAll(ctx context.Context) {
	names, err := s.Repositories(ctx)
	if err != nil {
		s.log.Error("cannot check the repositories", "error", err)
	}
	for _, name := range names {
		if st, err := s.load(name); err == nil && len(st.list.Manifests) == 0 {
			s.collect(ctx, name)
		}
	}
}

// Close ends the collection and the uploads.
func (s *Store) Close() error {
	s.stop()
	s.collections.Wait()
	var err error
	for _, u := range s.unfinished() {
		if failed := u.end(); !errors.Is(failed, ErrUploadUnknown) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// unfinished returns the unfinished uploads.
func (s *Store) unfinished() []*Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.uploads))
}

// Repositories returns the names of the repositories, sorted, including those that have content but no list of it.
func (s *Store) Repositories(ctx context.Context) ([]string, error) {
	var found []string
	err := filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if entry.Name() == listFile || entry.Name() == blobsFolder && isWithoutList(dir) {
			name, err := filepath.Rel(s.root, dir)
			if err != nil {
				return err
			}
			if name = filepath.ToSlash(name); access.ValidRepository(name) {
				found = append(found, name)
			}
		}
		if entry.IsDir() && (entry.Name() == blobsFolder || strings.HasPrefix(entry.Name(), "_")) {
			return filepath.SkipDir
		}
		return ctx.Err()
	})
	slices.Sort(found)
	return slices.Compact(found), err
}

// isWithoutList reports whether a folder has content of a repository but no list of it.
func isWithoutList(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, listFile))
	return isAbsent(err) && hasContent(dir)
}

// uploadsFolder is the folder of a repository with its unfinished uploads. No part of the name of a repository can be
// equal to it.
const uploadsFolder = "_uploads"

// removeUnfinished removes the unfinished uploads and lists that a killed process has left: no client can continue
// them.
func (s *Store) removeUnfinished() error {
	var unfinished []string
	err := filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && name == uploadsFolder:
			unfinished = append(unfinished, path)
			return filepath.SkipDir
		case entry.IsDir() && name == blobsFolder:
			return filepath.SkipDir
		case entry.Type().IsRegular() && isUnfinishedList(name):
			unfinished = append(unfinished, path)
		}
		return nil
	})
	for _, path := range unfinished {
		err = errors.Join(err, os.RemoveAll(path))
		_ = s.disk.remove(filepath.Dir(path)) // It can have content.
	}
	return err
}

// isUnfinishedList reports whether a name is that of a list of manifests whose writing has not ended, or of its copy in
// former releases.
func isUnfinishedList(name string) bool {
	for _, prefix := range []string{listFile + ".", "." + formerListFile, "." + listFile} {
		if digits, ok := strings.CutPrefix(name, prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return false
}

// dir returns the folder of a repository. It fails for a name that no repository can have: the content of another one
// would have it, too.
func (s *Store) dir(repository string) (string, error) {
	if !access.ValidRepository(repository) {
		return "", ErrNameInvalid
	}
	for part := range strings.SplitSeq(repository, "/") {
		if part == listFile || part == markerFile || part == blobsFolder {
			return "", ErrNameInvalid
		}
	}
	return filepath.Join(s.root, filepath.FromSlash(repository)), nil
}

// Damage is what is known to be damaged: the repositories that are refused, and the manifests and blobs that are not
// served.
type Damage struct{ Repositories, Contents int }

// Damage returns the damage of visible repositories that was found and is not repaired.
func (s *Store) Damage(visible func(repository string) bool) Damage {
	s.mu.Lock()
	var lists []string
	for repository, err := range s.problems {
		if isDamage(err) && visible(repository) {
			lists = append(lists, repository)
		}
	}
	var contents []contentKey
	for key, last := range s.checked {
		if last.isDamaged && visible(key.repository) {
			contents = append(contents, key)
		}
	}
	s.mu.Unlock()
	var found Damage
	for _, repository := range lists {
		if _, err := s.load(repository); errors.Is(err, ErrDamaged) {
			found.Repositories++
		}
	}
	for _, key := range contents {
		f, err := s.open(key.repository, key.digest)
		switch {
		case err == nil:
			_ = f.Close() // It was only read.
		case err == errDamagedContent || !errors.Is(err, ErrBlobUnknown): //nolint:errorlint // It can be repaired, or was damaged when it was last read.
			found.Contents++
		}
	}
	return found
}

// Probe fails if the folder cannot be read now.
func (s *Store) Probe() error {
	dir, err := os.Open(s.root)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err = dir.Readdirnames(1); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
