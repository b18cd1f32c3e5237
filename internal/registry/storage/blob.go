package storage

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Content is open content, which the caller has to close. It is not affected by later changes.
type Content struct {
	*os.File
	MediaType string
	Digest    Digest
}

// contentKey identifies a file with content.
type contentKey struct {
	repository string
	digest     Digest
}

// contentCheck is the result of a check of a file.
type contentCheck struct {
	modified  time.Time
	size      int64
	isDamaged bool
}

// errDamagedContent is the error for content that was read completely and has another digest.
var errDamagedContent = fmt.Errorf("%w: its content is damaged", ErrBlobUnknown)

// open opens content that is not damaged. A file is verified again when it has changed. Each damage is logged once. A
// fault of the system, such as a lack of descriptors, is another error: only content that was read completely can be
// damaged.
func (s *Store) open(repository string, d Digest) (*os.File, error) {
	dir, err := s.dir(repository)
	if err != nil {
		return nil, ErrBlobUnknown
	}
	f, err := os.Open(d.file(dir))
	if isAbsent(err) {
		return nil, ErrBlobUnknown
	}
	if err != nil {
		return nil, err
	}
	if err := s.verify(f, repository, d); err != nil {
		_ = f.Close() // It was only read.
		return nil, err
	}
	return f, nil
}

// verify fails if an open file has other content than its digest states.
func (s *Store) verify(f *os.File, repository string, d Digest) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return ErrBlobUnknown
	}
	s.mu.Lock()
	last, known := s.checked[contentKey{repository, d}]
	s.mu.Unlock()
	if !known || !last.modified.Equal(info.ModTime()) || last.size != info.Size() {
		matches, err := d.matches(f)
		if err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if !matches {
			s.log.Error(
				"content is damaged and not served; push it again, or restore the file from a backup", "repository", repository,
				"digest", d, "file", f.Name(),
			)
		}
		last = s.recordCheck(repository, d, info, !matches)
	}
	if last.isDamaged {
		return errDamagedContent
	}
	return nil
}

// recordCheck keeps the result of a check of a file.
func (s *Store) recordCheck(repository string, d Digest, info fs.FileInfo, isDamaged bool) contentCheck {
	check := contentCheck{info.ModTime(), info.Size(), isDamaged}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The strings of a request have its whole path.
	s.checked[contentKey{strings.Clone(repository), Digest(strings.Clone(string(d)))}] = check
	return check
}

// read returns content that is not damaged.
func (s *Store) read(repository string, d Digest) ([]byte, error) {
	f, err := s.open(repository, d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Blob opens a blob.
func (s *Store) Blob(repository string, d Digest) (*Content, error) {
	f, err := s.open(repository, d)
	if err != nil {
		return nil, err
	}
	return &Content{f, "application/octet-stream", d}, nil
}

// Pushed returns the time at which content was pushed first; zero if it is not known.
func (s *Store) Pushed(repository string, d Digest) time.Time {
	dir, err := s.dir(repository)
	if err != nil {
		return time.Time{}
	}
	info, err := os.Stat(d.file(dir))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// has reports whether a repository has content that is not damaged.
func (s *Store) has(repository string, d Digest) (bool, error) {
	f, err := s.open(repository, d)
	switch {
	case err == nil:
		return true, f.Close()
	case isUnknown(err):
		return false, nil
	}
	return false, err
}

// place gives the verified content of an open file its name in a repository, which the caller has locked. The content
// is on the disk.
func (s *Store) place(repository, dir string, f *os.File, d Digest) error {
	path := d.file(dir)
	if err := s.disk.mkdir(s.root, filepath.Dir(path)); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := s.disk.rename(f, path); err != nil {
		return err
	}
	s.recordCheck(repository, d, info, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.collected, repository)
	return nil
}

// write stores a manifest in a repository, which the caller has locked. It keeps the file, and its time, if there is
// one that is not damaged.
func (s *Store) write(repository, dir string, d Digest, content []byte) (err error) {
	switch exists, err := s.has(repository, d); {
	case err != nil:
		return err
	case exists:
		return s.disk.syncFolder(filepath.Dir(d.file(dir))) // Its name can have failed to reach the disk.
	}
	u, err := s.newFile(dir)
	if err != nil {
		return err
	}
	defer func() {
		_ = u.Close() // Its content is on the disk, or it is removed.
		if err != nil {
			_ = s.disk.remove(u.Name()) // The next start removes it.
		}
		_ = s.disk.remove(filepath.Dir(u.Name())) // Other uploads can be in it.
	}()
	if _, err := s.disk.write(u, content); err != nil {
		return err
	}
	if err := s.disk.sync(u); err != nil {
		return err
	}
	return s.place(repository, dir, u, d)
}

// newFile creates a file for an upload to a repository. The end of another upload can remove the empty folder.
func (s *Store) newFile(dir string) (f *os.File, err error) {
	const attempts = 10
	folder := filepath.Join(dir, uploadsFolder)
	for range attempts {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // The content of a registry is for other users, too.
			return nil, err
		}
		if f, err = s.disk.create(folder, "upload.*"); !isAbsent(err) {
			return f, err
		}
	}
	return nil, err
}

// DeleteBlob deletes a blob.
func (s *Store) DeleteBlob(ctx context.Context, repository string, d Digest) error {
	dir, unlock, err := s.lock(ctx, repository)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.loadLocked(repository); err != nil {
		return err
	}
	if _, err := os.Stat(d.file(dir)); isAbsent(err) {
		return ErrBlobUnknown
	}
	return s.disk.remove(d.file(dir))
}

// lock locks a repository for a change, and returns its folder.
func (s *Store) lock(ctx context.Context, repository string) (dir string, unlock func(), err error) {
	if dir, err = s.dir(repository); err != nil {
		return "", nil, err
	}
	unlock, err = s.changing.Lock(ctx, repository)
	return dir, unlock, err
}
