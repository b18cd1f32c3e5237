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
	// MakeRoom bounds the store. It is called before content is written and calls
	// reserve, which takes the bytes up on the disk, once there is room for them; it
	// keeps others from reserving until reserve has returned. Its error is that of
	// the write, of which nothing is left then. Nothing is bounded when it is nil.
	MakeRoom func(ctx context.Context, need Need, reserve func() error) error
	// Before is told of each change of the directory before the store makes it, and
	// an error stops the change as an error of the disk would. Tests stop at each of
	// them; otherwise it is nil.
	Before func(change string) error
}

// Need is what is going to be written.
type Need struct {
	Bytes int64
	// Derived says that it can be computed again, so that it is worth less than what
	// was fetched.
	Derived bool
}

// Store keeps verified content in a directory, under its digest. Whatever is read
// from it is verified again: a file that changed on the disk is put aside and
// counts as absent.
//
// Several processes can share a directory. Entries appear whole or not at all,
// whatever happens to the process or the disk.
type Store struct {
	dir      string
	now      func() time.Time
	makeRoom func(ctx context.Context, need Need, reserve func() error) error
	before   func(change string) error
	lock     *flock.Flock
	changes  *changes
	// peeks says that reading and writing are not recorded as uses.
	peeks bool
}

// Dir is the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Close gives up the directory. Content that is open stays readable.
func (s *Store) Close() error { return errors.Join(s.lock.Close(), s.changes.close()) }

// Peek is the same store, of which reading is no use: what only looks at the store
// does not change what is evicted first. Close the store itself, and not this one.
func (s *Store) Peek() *Store {
	peek := *s
	peek.peeks = true
	return &peek
}

// Put stores the content that r gives under its digest. It fails, and stores
// nothing, unless r gives exactly size bytes with that digest. Content that is
// there already is not read from r; that counts as a use of it.
func (s *Store) Put(ctx context.Context, digest Digest, size int64, r io.Reader) error {
	path := s.blobPath(digest)
	if s.claim(path) {
		return nil
	}
	verified := verifyReader(contextReader{ctx, r}, Descriptor{Digest: digest, Size: size})
	return s.write(ctx, path, Need{Bytes: size}, verified)
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
// seek: it is an [io.ReadSeekCloser]. While it is open its entry is not evicted,
// and one that is removed in another way stays readable. It fails with BlobNotFound when the content
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
	tryLock(f, false) // Held until it is closed: nobody evicts what is open.
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
