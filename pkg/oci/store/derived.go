package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// maxDerived bounds one derived entry.
const maxDerived = 1 << 30

// DerivedKey names a value that was computed from a blob.
type DerivedKey struct {
	// Digest is the blob.
	Digest oci.Digest
	// Name is the kind of the value, for example "index". It is a DNS label.
	Name string
	// Version is the version of the computation: a value of another version is absent.
	Version int
}

// PutDerived stores a value that was computed from a blob: the concatenation of its
// parts. It can be evicted at any time and is then computed again.
func (s *Store) PutDerived(ctx context.Context, key DerivedKey, parts ...[]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sum := key.sum(parts...)
	need := Need{Bytes: int64(len(sum)), Derived: true}
	readers := []io.Reader{bytes.NewReader(sum[:])}
	for _, p := range parts {
		need.Bytes += int64(len(p))
		readers = append(readers, bytes.NewReader(p))
	}
	return s.write(ctx, s.derivedPath(key), need, io.MultiReader(readers...))
}

// A DerivedWriter writes a derived value that is not in memory at once. What is written can be read at its offset
// before it is stored. Use [Store.NewDerived] to create one. Only ReadAt is safe for concurrent use.
type DerivedWriter struct {
	store   *Store
	path    string
	file    *os.File
	digest  hash.Hash
	written int64
}

// NewDerived returns a writer for a value of about a number of bytes, for which it reserves space. The value is stored
// by Commit. Call Discard after use.
func (s *Store) NewDerived(ctx context.Context, key DerivedKey, size int64) (*DerivedWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.reserve(ctx, Need{Bytes: sha256.Size + size, Derived: true})
	if err != nil {
		return nil, s.writeError(err)
	}
	w := &DerivedWriter{store: s, path: s.derivedPath(key), file: f, digest: key.digest()}
	if _, err := f.Seek(sha256.Size, io.SeekStart); err != nil {
		return nil, errors.Join(s.writeError(err), w.Discard())
	}
	return w, nil
}

// Write implements [io.Writer].
func (w *DerivedWriter) Write(p []byte) (n int, err error) {
	err = w.store.change("write", func() error { n, err = w.file.Write(p); return err })
	w.digest.Write(p[:n])
	w.written += int64(n)
	if err != nil {
		err = w.store.writeError(err)
	}
	return n, err
}

// ReadAt implements [io.ReaderAt] for the bytes that were written.
func (w *DerivedWriter) ReadAt(p []byte, off int64) (int, error) {
	return io.NewSectionReader(w.file, sha256.Size, w.written).ReadAt(p, off)
}

// Size returns the number of bytes that were written.
func (w *DerivedWriter) Size() int64 { return w.written }

// Commit stores the value, which cannot be read from the writer any more.
func (w *DerivedWriter) Commit() error {
	f := w.file
	w.file = nil
	err := w.store.settle(f, w.path, func() error {
		if err := f.Truncate(sha256.Size + w.written); err != nil {
			return err
		}
		_, err := f.WriteAt(w.digest.Sum(nil), 0)
		return err
	})
	if err != nil {
		return w.store.writeError(err)
	}
	return nil
}

// Discard removes a value that was not stored. It has no effect after Commit.
func (w *DerivedWriter) Discard() error {
	if w.file == nil {
		return nil
	}
	return errors.Join(w.file.Close(), os.Remove(w.file.Name()))
}

// GetDerived returns a value that PutDerived stored. It fails with BlobNotFound if there
// is none, and with DigestMismatch if it is damaged or belongs to another key. In both
// cases the caller computes the value again.
func (s *Store) GetDerived(ctx context.Context, key DerivedKey) ([]byte, error) {
	path := s.derivedPath(key)
	file, err := readRegular(ctx, path, maxDerived)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, oci.ErrBlobNotFound.New(nil, "the store has no %s of %s", key.Name, key.Digest)
	}
	if err != nil {
		return nil, err
	}
	if len(file) >= sha256.Size {
		data := file[sha256.Size:]
		if sum := key.sum(data); bytes.Equal(sum[:], file[:sha256.Size]) {
			s.touch(path)
			return data, nil
		}
	}
	s.quarantine(path, filepath.Base(path))
	return nil,
		oci.ErrDigestMismatch.New(nil, "the %s of %s in the store is damaged and was quarantined", key.Name, key.Digest)
}

// Derived is an open derived value, for reads at an offset. It is not evicted while it is
// open, and stays readable if it is removed in another way. Close it after use.
type Derived struct {
	*io.SectionReader
	file *os.File
}

// Close implements [io.Closer].
func (d *Derived) Close() error { return d.file.Close() }

// OpenDerived opens a value that PutDerived stored, for reads of parts. Unlike GetDerived
// it does not verify the value: the caller verifies each part, for example with a digest
// in an index. If a part is wrong, the caller calls GetDerived, which quarantines the
// damaged value. It fails with BlobNotFound if there is no such value.
func (s *Store) OpenDerived(ctx context.Context, key DerivedKey) (*Derived, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := s.derivedPath(key)
	f, err := openRegular(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, oci.ErrBlobNotFound.New(err, "the store has no %s of %s", key.Name, key.Digest)
	}
	tryLock(f, false)
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.touch(path)
	return &Derived{io.NewSectionReader(f, sha256.Size, max(0, info.Size()-sha256.Size)), f}, nil
}

func (s *Store) derivedPath(key DerivedKey) string {
	return filepath.Join(s.dir, derivedDir, derivedFile(key))
}

// sum returns a digest of a value and its key, so that an entry is not valid under
// another key.
func (k DerivedKey) sum(parts ...[]byte) [sha256.Size]byte {
	h := k.digest()
	for _, p := range parts {
		h.Write(p)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// digest returns the digest of the key, to which the value is added.
func (k DerivedKey) digest() hash.Hash {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d\n", k.Digest, k.Name, k.Version)
	return h
}
