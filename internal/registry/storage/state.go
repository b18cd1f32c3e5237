package storage

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// state is the list of the manifests of a repository at one time. It does not change, except that the mutex of the
// store protects parts.
type state struct {
	file   fs.FileInfo
	digest Digest
	list   list
	// parts are the manifests in each index of the list that was read. The index names its content, so they never change.
	parts map[Digest][]Descriptor
}

// isOf reports whether the state is that of a file.
func (st *state) isOf(info fs.FileInfo) bool {
	return st != nil && os.SameFile(st.file, info) && st.file.ModTime().Equal(info.ModTime()) &&
		st.file.Size() == info.Size()
}

// mostCached is the number of entries of lists that are kept in memory.
const mostCached = 100_000

// keep caches a state.
func (s *Store) keep(repository string, st *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.problems, repository)
	if former := s.states[repository]; former != nil {
		s.cached -= len(former.list.Manifests)
	}
	if s.cached += len(st.list.Manifests); s.cached > mostCached {
		clear(s.states)
		s.cached = len(st.list.Manifests)
	}
	s.states[repository] = st
}

// forget removes the state of a repository that does not exist any more.
func (s *Store) forget(repository string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.problems, repository)
	if former := s.states[repository]; former != nil {
		s.cached -= len(former.list.Manifests)
		delete(s.states, repository)
	}
}

// load returns the state of a repository, which is read again if its file has changed. The error is
// ErrRepositoryUnknown for one that does not exist, and ErrDamaged for one whose list is damaged and has no valid copy.
// Each damage is logged once.
func (s *Store) load(repository string) (*state, error) {
	return s.loadOr(repository, func(dir string, damage error) (*state, error) {
		unlock, err := s.changing.Lock(context.Background(), repository)
		if err != nil {
			return nil, err
		}
		defer unlock()
		return s.restore(repository, dir, damage)
	})
}

// loadLocked is like load for a repository that the caller has locked.
func (s *Store) loadLocked(repository string) (*state, error) {
	return s.loadOr(
		repository, func(dir string, damage error) (*state, error) { return s.restore(repository, dir, damage) },
	)
}

func (s *Store) loadOr(repository string, restore func(dir string, damage error) (*state, error)) (*state, error) {
	dir, err := s.dir(repository)
	if err != nil {
		return nil, ErrRepositoryUnknown
	}
	path := filepath.Join(dir, listFile)
	s.mu.Lock()
	last := s.states[repository]
	s.mu.Unlock()
	info, err := os.Stat(path)
	if err == nil && last.isOf(info) {
		return last, nil
	}
	st, err := readState(path)
	if isDamage(err) || isAbsent(err) && hasContent(dir) {
		st, err = restore(dir, err)
	}
	switch {
	case err == nil:
		s.inherit(st, last)
		s.restoreMarker(repository, dir)
		s.keep(repository, st)
		return st, nil
	case isAbsent(err):
		s.forget(repository)
		return nil, ErrRepositoryUnknown
	}
	return nil, s.problem(repository, path, err)
}

// problem logs an error of a repository, unless it is in the log and has not ended. It returns the error for clients.
func (s *Store) problem(repository, path string, err error) error {
	s.mu.Lock()
	last := s.problems[repository]
	s.problems[repository] = err
	s.mu.Unlock()
	isLogged := last != nil && isDamage(last) == isDamage(err)
	switch {
	case !isDamage(err) && !isLogged:
		s.log.Error("the repository cannot be read now", "repository", repository, "file", path, "error", err)
	case isDamage(err) && !isLogged:
		s.log.Error("the repository is refused because its list of versions is damaged; restore the file from a backup, or move the folder of the "+
			"repository out of the folder of the server and push its versions again", "repository", repository, "file", path,
			"error", err)
	}
	if isDamage(err) {
		return ErrDamaged
	}
	return err
}

func readState(path string) (*state, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	l, err := parseList(content)
	if err != nil {
		return nil, damageError{err}
	}
	return newState(info, content, l), nil
}

func newState(info fs.FileInfo, content []byte, l list) *state {
	return &state{file: info, digest: DigestOf(content, ""), list: l}
}

// formerListFile is a copy of the list of a release whose lists a loss of power could damage. A change removes it.
const formerListFile = "_index.json"

// restore restores a list that is damaged or missing, although there is content, from the copy of a former release. It
// returns the damage if there is no valid copy. The repository is locked.
func (s *Store) restore(repository, dir string, damage error) (*state, error) {
	path := filepath.Join(dir, listFile)
	if st, err := readState(path); err == nil {
		return st, nil // Another request has restored it.
	}
	if isAbsent(damage) {
		damage = damageError{errors.New("the file is missing, and the repository has content")}
	}
	kept, err := readState(filepath.Join(dir, formerListFile))
	switch {
	case isAbsent(err), isDamage(err):
		return nil, damage
	case err != nil:
		return nil, err // It may be valid.
	}
	content, err := os.ReadFile(filepath.Join(dir, formerListFile))
	if err != nil {
		return nil, err
	}
	info, err := s.disk.replace(path, content)
	if err != nil {
		return nil, err
	}
	s.log.Warn("the list of versions was restored from its copy", "repository", repository, "file", path, "error", damage)
	return newState(info, content, kept.list), nil
}

// restoreMarker writes the file that states the version of the layout if it is missing or damaged: its content is
// known, and this package does not need it.
func (s *Store) restoreMarker(repository, dir string) {
	path := filepath.Join(dir, markerFile)
	var found struct {
		Version string `json:"imageLayoutVersion"`
	}
	content, err := os.ReadFile(path)
	if err != nil && !isAbsent(err) || err == nil && json.Unmarshal(content, &found) == nil && found.Version != "" {
		return
	}
	if _, err := s.disk.replace(path, []byte(marker)); err != nil {
		s.log.Error("cannot restore a file", "repository", repository, "file", path, "error", err)
		return
	}
	s.log.Warn("restored a file that was missing or damaged", "repository", repository, "file", path)
}

// hasContent reports whether a repository has blobs. A folder that cannot be read may have content.
func hasContent(dir string) bool {
	for algorithm := range algorithms {
		folder, err := os.Open(filepath.Join(dir, blobsFolder, algorithm))
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return true
		}
		_, err = folder.Readdirnames(1)
		_ = folder.Close() // It was only read.
		if !errors.Is(err, io.EOF) {
			return true
		}
	}
	return false
}

// save replaces the list of a repository, which the caller has locked.
func (s *Store) save(repository, dir string, former *state, l list) error {
	content, err := l.encode()
	if err != nil {
		return err
	}
	if former != nil && former.digest == DigestOf(content, "") {
		return s.disk.syncFolder(dir) // Its name can have failed to reach the disk.
	}
	info, err := s.disk.replace(filepath.Join(dir, listFile), content)
	if err != nil {
		return err
	}
	st := newState(info, content, l)
	s.inherit(st, former)
	s.keep(repository, st)
	return s.disk.remove(filepath.Join(dir, formerListFile))
}

// inherit keeps the parts of the indexes that a former state has, too.
func (s *Store) inherit(st, former *state) {
	st.parts = map[Digest][]Descriptor{}
	if former == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var keep func(entries []Descriptor)
	keep = func(entries []Descriptor) {
		for _, index := range entries {
			parts, known := former.parts[index.Digest]
			if _, isKept := st.parts[index.Digest]; known && !isKept {
				st.parts[index.Digest] = parts
				keep(parts)
			}
		}
	}
	keep(st.list.Manifests)
}

// partsOf returns the manifests in an index; none if it cannot be read.
func (s *Store) partsOf(repository string, st *state, index Digest) []Descriptor {
	s.mu.Lock()
	parts, known := st.parts[index]
	s.mu.Unlock()
	if known {
		return parts
	}
	content, err := s.read(repository, index)
	var m document
	if err != nil || json.Unmarshal(content, &m) != nil {
		return nil
	}
	parts = slices.DeleteFunc(m.Manifests, func(part Descriptor) bool {
		_, err := ParseDigest(string(part.Digest))
		return err != nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	st.parts[index] = parts
	return parts
}

// part returns a manifest that an index of the repository has, at any depth.
func (s *Store) part(repository string, st *state, d Digest) (Descriptor, bool) {
	seen := map[Digest]bool{}
	var within func(entries []Descriptor) (Descriptor, bool)
	within = func(entries []Descriptor) (Descriptor, bool) {
		for _, index := range entries {
			if !index.isIndex() || seen[index.Digest] {
				continue
			}
			seen[index.Digest] = true
			parts := s.partsOf(repository, st, index.Digest)
			if i := slices.IndexFunc(parts, func(part Descriptor) bool { return part.Digest == d }); i >= 0 {
				return parts[i], true
			}
			if found, ok := within(parts); ok {
				return found, true
			}
		}
		return Descriptor{}, false
	}
	return within(st.list.Manifests)
}

// create creates a repository without manifests unless it exists. The caller has locked it.
func (s *Store) create(repository, dir string) (*state, error) {
	st, err := s.loadLocked(repository)
	if !errors.Is(err, ErrRepositoryUnknown) {
		return st, err
	}
	if err := s.disk.mkdir(s.root, dir); err != nil {
		return nil, err
	}
	if _, err := s.disk.replace(filepath.Join(dir, markerFile), []byte(marker)); err != nil {
		return nil, err
	}
	l := newList(nil)
	l.Annotations = map[string]string{noFallbackAnnotation: "true"}
	if err := s.save(repository, dir, nil, l); err != nil {
		return nil, err
	}
	return s.loadLocked(repository)
}
