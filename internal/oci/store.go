package oci

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrBlobNotFound is the failure of content that is not in the store.
var ErrBlobNotFound = failure.Register(failure.Code{
	Name: "BlobNotFound", Class: failure.NotFound,
	Cause: "Content is asked for by digest that this place does not have.",
	Fix:   "Fetch the package again; with the pull policy Never, put the package into the store first.",
})

// ErrStoreWrite is the failure of writing to the store.
var ErrStoreWrite = failure.Register(failure.Code{
	Name: "StoreWrite", Class: failure.Unavailable,
	Cause: "The store cannot write to its directory: the disk is full, read-only or broken.",
	Fix:   "Free some space, or name another directory. Nothing half-written is left behind.",
})

// StoreOptions changes how a store works.
type StoreOptions struct {
	// Now gives the time for the record of when a blob was last used; the system
	// clock when it is nil.
	Now func() time.Time
}

// Store keeps verified content in a directory, under its digest. Whatever is read
// from it is verified again: a file that changed on the disk is put aside and
// counts as absent.
//
// Several processes can share a directory. Entries appear whole or not at all,
// whatever happens to the process or the disk.
type Store struct {
	dir  string
	now  func() time.Time
	lock *flock.Flock
}

// Dir is the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Close gives up the directory. Content that is open stays readable.
func (s *Store) Close() error { return s.lock.Close() }

// Put stores the content that r gives under its digest. It fails, and stores
// nothing, unless r gives exactly size bytes with that digest. Content that is
// there already is not read from r.
func (s *Store) Put(ctx context.Context, digest Digest, size int64, r io.Reader) error {
	if s.Has(digest) {
		return nil
	}
	verified := verifyReader(contextReader{ctx, r}, Descriptor{Digest: digest, Size: size})
	return s.write(s.blobPath(digest), verified)
}

// PutBytes is Put for content that is in memory; it gives the digest.
func (s *Store) PutBytes(ctx context.Context, data []byte) (Digest, error) {
	digest := DigestOf(data)
	return digest, s.Put(ctx, digest, int64(len(data)), bytes.NewReader(data))
}

// Has reports whether the store has an entry for the digest, without reading it.
func (s *Store) Has(digest Digest) bool {
	info, err := os.Lstat(s.blobPath(digest))
	return err == nil && info.Mode().IsRegular()
}

// Open gives content after its whole digest has been verified. The reader can
// seek: it is an [io.ReadSeekCloser]. It fails with BlobNotFound when the content
// is not there, and with DigestMismatch when it was there and is damaged.
func (s *Store) Open(ctx context.Context, digest Digest) (io.ReadSeekCloser, error) {
	path := s.blobPath(digest)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrBlobNotFound.New(nil, "%s is not in the store", digest)
	}
	if err != nil {
		return nil, ErrBlobNotFound.New(err, "%s cannot be read from the store", digest)
	}
	got, _, err := DigestReader(contextReader{ctx, f})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if got != digest {
		_ = f.Close()
		s.quarantine(path, digest.Hex())
		return nil, ErrDigestMismatch.New(nil, "the entry of the store for %s has digest %s and was put aside", digest, got)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.touch(path)
	return f, nil
}

// Get gives content as bytes, read once and verified. It fails as Open does, and
// with PackageTooLarge when there is more than most bytes.
func (s *Store) Get(ctx context.Context, digest Digest, most int64) ([]byte, error) {
	path := s.blobPath(digest)
	data, err := readRegular(ctx, path, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrBlobNotFound.New(nil, "%s is not in the store", digest)
	}
	if err != nil {
		return nil, err
	}
	if got := DigestOf(data); got != digest {
		s.quarantine(path, digest.Hex())
		return nil, ErrDigestMismatch.New(nil, "the entry of the store for %s has digest %s and was put aside", digest, got)
	}
	s.touch(path)
	return data, nil
}

func (s *Store) blobPath(d Digest) string {
	hex := d.Hex()
	if hex == "" {
		hex = "none"
	}
	return filepath.Join(s.dir, blobsDir, hex[:2], hex)
}

// write puts what r gives under path: whole, or not at all. An error of r comes
// back as it is, so that the network is not blamed on the disk.
func (s *Store) write(path string, r io.Reader) error {
	in := &sourceReader{r: r}
	if err := s.writeFile(path, in); err != nil {
		if in.err != nil {
			return in.err
		}
		return ErrStoreWrite.New(err, "cannot write to the store %s", s.dir)
	}
	return nil
}

func (s *Store) writeFile(path string, r io.Reader) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, tempDir), "put-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// sourceReader remembers why reading failed.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// quarantine takes a damaged entry out of the way and keeps it for whoever wants
// to know what happened. One entry is kept for each name.
func (s *Store) quarantine(path, name string) {
	if err := os.Rename(path, filepath.Join(s.dir, quarantineDir, name)); err != nil {
		_ = os.Remove(path)
	}
}

// touch records the use of an entry as its modification time, for whoever has to
// choose what to evict. Failing to record it is harmless.
func (s *Store) touch(path string) {
	now := s.now()
	_ = os.Chtimes(path, now, now)
}

// Artifact gives the content under a digest that is in the store. It fails with
// BlobNotFound when the root is not there; what hangs from it may be missing
// still, as after a fetch that took only what a package needs.
func (s *Store) Artifact(ctx context.Context, root Digest, limits Limits) (Artifact, error) {
	raw, err := s.Get(ctx, root, limits.WithDefaults().Manifest)
	if err != nil {
		return nil, err
	}
	doc, err := ParseDocument(raw, "", limits)
	if err != nil {
		return nil, err
	}
	return storeArtifact{store: s, root: Descriptor{MediaType: doc.MediaType, Digest: root, Size: int64(len(raw))}}, nil
}

// Add puts an artifact into the store with everything that it is made of, for
// example from a file on a machine without a registry. Content is verified on the
// way, and the root comes last.
func (s *Store) Add(ctx context.Context, a Artifact, limits Limits) error {
	return walk(ctx, a, limits, func(ctx context.Context, d Descriptor, raw []byte) error {
		if raw != nil {
			_, err := s.PutBytes(ctx, raw)
			return err
		}
		r, err := a.Open(ctx, d)
		if err != nil {
			return err
		}
		return errors.Join(s.Put(ctx, d.Digest, d.Size, r), r.Close())
	})
}

type storeArtifact struct {
	store *Store
	root  Descriptor
}

func (a storeArtifact) Root() Descriptor { return a.root }

func (a storeArtifact) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	return a.store.Open(ctx, d.Digest)
}

// contextReader stops at the end of its context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // A reader has no other way to get it.
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
