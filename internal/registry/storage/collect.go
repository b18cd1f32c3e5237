package storage

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// collected is the result of a collection: the list that it has read, and the time at which more garbage is due. Zero
// means that there is none.
type collected struct {
	list Digest
	due  time.Time
}

// collectEvery collects the garbage of all repositories until the context ends.
func (s *Store) collectEvery(ctx context.Context) {
	next := time.NewTicker(s.options.Every)
	defer next.Stop()
	for {
		s.Collect(ctx)
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// Collect removes the content that no manifest needs, and unfinished uploads, that are older than the grace period, and
// repositories without content.
func (s *Store) Collect(ctx context.Context) {
	oldest := time.Now().Add(-s.options.Grace)
	for _, u := range s.unfinished() {
		if u.isOlder(oldest) {
			_ = u.Cancel(ctx) // It can have ended.
		}
	}
	names, err := s.Repositories(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Error("cannot list the repositories to collect their garbage", "error", err)
	}
	for _, name := range names {
		s.collect(ctx, name)
	}
}

// isOlder reports whether an upload has received nothing since a time. It does not wait for one that is receiving.
func (u *Upload) isOlder(oldest time.Time) bool {
	if !u.mu.TryLock() {
		return false
	}
	defer u.mu.Unlock()
	return u.used.Before(oldest)
}

// collect collects the garbage of a repository, unless there is nothing to do.
func (s *Store) collect(ctx context.Context, repository string) {
	dir, unlock, err := s.lock(ctx, repository)
	if err != nil {
		return
	}
	defer unlock()
	st, err := s.loadLocked(repository)
	if err != nil {
		return // It is in the log. A damaged list needs all content.
	}
	s.mu.Lock()
	last, known := s.collected[repository]
	s.mu.Unlock()
	if known && last.list == st.digest && (last.due.IsZero() || time.Now().Before(last.due)) {
		return
	}
	result := collected{list: st.digest}
	needed, err := s.needed(ctx, repository, dir, st)
	if err == nil {
		result.due, err = s.sweep(ctx, dir, needed)
	} else if isUnknown(err) {
		s.log.Error("the garbage of the repository is not collected, because it could be the content of a version whose manifest is missing or damaged; "+
			"push the version again, restore the file from a backup, or delete the version", "repository", repository, "error",
			err)
		result.due, err = time.Now().Add(s.options.Grace), nil
	}
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("cannot collect the garbage of a repository", "repository", repository, "error", err)
		}
		return
	}
	s.mu.Lock()
	s.collected[repository] = result
	s.mu.Unlock()
	if len(st.list.Manifests) == 0 && !hasContent(dir) {
		if err := s.removeRepository(repository, dir); err != nil {
			s.log.Warn("cannot remove a repository without content", "repository", repository, "error", err)
		}
	}
}

// needed returns the content that the manifests of a repository need. It fails with the path of a manifest that is
// missing or damaged: only that manifest names its parts.
func (s *Store) needed(ctx context.Context, repository, dir string, st *state) (map[Digest]bool, error) {
	needed := map[Digest]bool{}
	var add func(manifests []Descriptor) error
	add = func(manifests []Descriptor) error {
		for _, entry := range manifests {
			if _, err := ParseDigest(string(entry.Digest)); err != nil || needed[entry.Digest] {
				continue // No file has such a name.
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			needed[entry.Digest] = true
			content, err := s.read(repository, entry.Digest)
			if err != nil {
				return &fs.PathError{Op: "read", Path: entry.Digest.file(dir), Err: err}
			}
			var m document
			if json.Unmarshal(content, &m) != nil {
				continue // It is no manifest, so it has no parts.
			}
			if m.Config != nil {
				needed[m.Config.Digest] = true
			}
			for _, layer := range m.Layers {
				needed[layer.Digest] = true
			}
			if err := add(m.Manifests); err != nil {
				return err
			}
		}
		return nil
	}
	return needed, add(st.list.Manifests)
}

// sweep removes the content of a folder that is not needed and older than the grace period. It returns the time at
// which more is due.
func (s *Store) sweep(ctx context.Context, dir string, needed map[Digest]bool) (due time.Time, err error) {
	now := time.Now()
	for algorithm := range algorithms {
		files, err := os.ReadDir(filepath.Join(dir, blobsFolder, algorithm))
		if err != nil && !isAbsent(err) {
			return due, err
		}
		for _, file := range files {
			d, err := ParseDigest(algorithm + ":" + file.Name())
			if err != nil || needed[d] {
				continue // Another program has added the file.
			}
			info, err := file.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || ctx.Err() != nil {
				return due, errors.Join(err, ctx.Err())
			}
			if end := info.ModTime().Add(s.options.Grace); end.After(now) {
				if due.IsZero() || end.Before(due) {
					due = end
				}
				continue
			}
			if err := s.disk.remove(d.file(dir)); err != nil {
				return due, err
			}
		}
	}
	return due, nil
}

// removeRepository removes a repository without content, but not those below it. The file that makes it a repository is
// removed last, so that an interrupted removal is repeated.
func (s *Store) removeRepository(repository, dir string) error {
	for algorithm := range algorithms {
		if err := s.disk.remove(filepath.Join(dir, blobsFolder, algorithm)); err != nil {
			return err
		}
	}
	for _, name := range []string{blobsFolder, formerListFile, markerFile, listFile} {
		if err := s.disk.remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	s.forget(repository)
	_ = s.disk.remove(dir) // It can contain uploads, and other repositories.
	return nil
}
