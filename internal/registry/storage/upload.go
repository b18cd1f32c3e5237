package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Upload is an unfinished upload of a blob. It is safe for concurrent use.
type Upload struct {
	store           *Store
	repository, dir string
	id              string

	mu   sync.Mutex
	file *os.File // nil after the end
	hash hash.Hash
	size int64
	used time.Time
}

// StartUpload starts an upload to a repository, which need not exist.
func (s *Store) StartUpload(repository string) (*Upload, error) {
	dir, err := s.dir(repository)
	if err != nil {
		return nil, err
	}
	if _, err := s.load(repository); err != nil && !errors.Is(err, ErrRepositoryUnknown) {
		return nil, err
	}
	f, err := s.newFile(dir)
	if err != nil {
		return nil, err
	}
	u := &Upload{
		store: s, repository: repository, dir: dir, id: rand.Text(), file: f, hash: Digest("").hash(), used: time.Now(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads[u.id] = u
	return u, nil
}

// Upload returns an unfinished upload to a repository.
func (s *Store) Upload(repository, id string) (*Upload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.uploads[id]; u != nil && u.repository == repository {
		return u, nil
	}
	return nil, ErrUploadUnknown
}

// ID returns the name of the upload in its repository.
func (u *Upload) ID() string { return u.id }

// Size returns the number of bytes that have arrived.
func (u *Upload) Size() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.size
}

// Append adds a part, which begins at an offset; a negative offset is the end. It returns the new size, also after a
// failure: the upload can be continued there.
func (u *Upload) Append(r io.Reader, offset int64) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.size, u.append(r, offset)
}

func (u *Upload) append(r io.Reader, offset int64) error {
	if u.file == nil {
		return ErrUploadUnknown
	}
	if offset >= 0 && offset != u.size {
		return fmt.Errorf("%w, which has %d bytes", ErrOffset, u.size)
	}
	u.used = time.Now()
	_, err := io.Copy(uploadWriter{u}, r)
	u.used = time.Now()
	return err
}

// uploadWriter writes to an upload, which is locked.
type uploadWriter struct{ *Upload }

// Write implements [io.Writer]. After a failure, the hash is that of the part that was written.
func (w uploadWriter) Write(p []byte) (int, error) {
	n, err := w.store.disk.write(w.file, p)
	_, _ = w.hash.Write(p[:n]) // It never fails.
	w.size += int64(n)
	return n, err
}

// Commit adds the last part and stores the blob, on the disk. It creates the repository unless it exists. An upload
// with another digest ends.
func (u *Upload) Commit(ctx context.Context, r io.Reader, offset int64, d Digest) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.append(r, offset); err != nil {
		return err
	}
	switch matches, err := u.matches(d); {
	case err != nil:
		return err
	case !matches:
		return errors.Join(fmt.Errorf("%w: the content is not %s", ErrDigestInvalid, d), u.endLocked())
	}
	s := u.store
	if err := s.disk.sync(u.file); err != nil {
		// The operating system can take the content for written later: it has to be sent again.
		return errors.Join(err, u.endLocked())
	}
	_, unlock, err := s.lock(ctx, u.repository)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.create(u.repository, u.dir); err != nil {
		return err
	}
	if err := s.place(u.repository, u.dir, u.file, d); err != nil {
		return err
	}
	return u.endLocked()
}

// matches reports whether the content has a digest.
func (u *Upload) matches(d Digest) (bool, error) {
	if d.algorithm() == defaultAlgorithm {
		return d.of(u.hash) == d, nil
	}
	return d.matches(io.NewSectionReader(u.file, 0, u.size))
}

// Cancel ends the upload.
func (u *Upload) Cancel(ctx context.Context) error {
	if err := u.end(); err != nil {
		return err
	}
	_, unlock, err := u.store.lock(ctx, u.repository)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := u.store.loadLocked(u.repository); errors.Is(err, ErrRepositoryUnknown) {
		_ = u.store.disk.remove(u.dir) // It can have other uploads, and repositories.
	}
	return nil
}

func (u *Upload) end() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file == nil {
		return ErrUploadUnknown
	}
	return u.endLocked()
}

// endLocked removes the file unless it has become a blob, and its folder if no other upload is in it.
func (u *Upload) endLocked() error {
	s := u.store
	s.mu.Lock()
	delete(s.uploads, u.id)
	s.mu.Unlock()
	name := u.file.Name()
	err := errors.Join(u.file.Close(), s.disk.remove(name))
	u.file = nil
	_ = s.disk.remove(filepath.Dir(name)) // Other uploads can be in it.
	return err
}

// Mount copies a blob of another repository. It reports whether the blob is there now; otherwise a client has to upload
// it.
func (s *Store) Mount(ctx context.Context, repository, from string, d Digest) (bool, error) {
	if exists, err := s.has(repository, d); err != nil || exists {
		return exists, err
	}
	f, err := s.open(from, d)
	if isUnknown(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	u, err := s.StartUpload(repository)
	if err != nil {
		return false, err
	}
	if err := u.Commit(ctx, f, 0, d); err != nil {
		return false, errors.Join(err, u.Cancel(context.WithoutCancel(ctx)))
	}
	return true, nil
}
