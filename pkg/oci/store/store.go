package store

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

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
)

// ErrStoreWrite is the code for writing to the store.
var ErrStoreWrite = errcode.Code{
	Name: "StoreWrite", Class: errcode.Unavailable,
	Cause: "The store cannot write to its directory: the disk is full, read-only or broken.",
	Fix:   "Free some space, or use another directory. Incomplete files are not kept.",
}

// Options configures a store.
type Options struct {
	// Now returns the time of the last use of a blob; nil means the system clock.
	Now func() time.Time
	// MakeRoom bounds the store. It is called before content is written. It calls
	// reserve, which allocates the bytes on the disk, once there is enough space, and
	// prevents other reservations until reserve returns. Its error fails the write, which
	// then has no effect. Nil means no bound.
	MakeRoom func(ctx context.Context, need Need, reserve func() error) error
	// Before is called before each change of the directory; its error fails the change
	// like a disk error. It is a hook for tests.
	Before func(change string) error
}

// Need describes a write.
type Need struct {
	Bytes int64
	// Derived is true for values that can be computed again, which are less valuable than
	// fetched content.
	Derived bool
}

// Store keeps verified content in a directory, under its digest. Each read verifies the
// content again; a file that changed on disk is quarantined and treated as absent.
//
// Several processes can share a directory. An entry is complete or absent, also after a
// crash or a disk failure.
type Store struct {
	dir      string
	now      func() time.Time
	makeRoom func(ctx context.Context, need Need, reserve func() error) error
	before   func(change string) error
	lock     *flock.Flock
	changes  *changes
	// peeks disables the recording of uses.
	peeks bool
}

// Dir returns the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Close releases the directory. Open content stays readable.
func (s *Store) Close() error { return errors.Join(s.lock.Close(), s.changes.close()) }

// Peek returns the same store without recording uses, so that reads do not change the
// order of eviction. Close the original store, not this one.
func (s *Store) Peek() *Store {
	peek := *s
	peek.peeks = true
	return &peek
}

// Put stores the content of r under its digest. It fails, and stores nothing, unless r
// returns exactly size bytes with that digest. If the content is in the store, Put does
// not read r and records a use.
func (s *Store) Put(ctx context.Context, digest oci.Digest, size int64, r io.Reader) error {
	path := s.blobPath(digest)
	if s.claim(path) {
		return nil
	}
	verified := oci.VerifyReader(ctxio.Reader(ctx, r), oci.Descriptor{Digest: digest, Size: size})
	return s.write(ctx, path, Need{Bytes: size}, verified)
}

// PutBytes is like Put for content in memory, and returns its digest.
func (s *Store) PutBytes(ctx context.Context, data []byte) (oci.Digest, error) {
	digest := oci.DigestOf(data)
	return digest, s.Put(ctx, digest, int64(len(data)), bytes.NewReader(data))
}

// Has reports whether the store has an entry for the digest, without reading it.
func (s *Store) Has(digest oci.Digest) bool {
	info, err := os.Lstat(s.blobPath(digest))
	return err == nil && info.Mode().IsRegular()
}

// Open returns content after it verifies the whole digest. Until the reader is closed, the
// entry is not evicted; if it is removed in another way, the reader stays valid. It fails
// with ErrBlobNotFound if the content is absent, and with ErrDigestMismatch if it is
// damaged.
func (s *Store) Open(ctx context.Context, digest oci.Digest) (io.ReadSeekCloser, error) {
	path := s.blobPath(digest)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, oci.ErrBlobNotFound.New(nil, "%s is not in the store", digest)
	}
	if err != nil {
		return nil, oci.ErrBlobNotFound.New(err, "%s cannot be read from the store", digest)
	}
	tryLock(f, false) // The lock prevents eviction until the file is closed.
	got, _, err := oci.DigestReader(ctxio.Reader(ctx, f))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if got != digest {
		_ = f.Close()
		s.quarantine(path, digest.Hex())
		return nil,
			oci.ErrDigestMismatch.New(nil, "the entry of the store for %s has digest %s and was quarantined", digest, got)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.touch(path)
	return f, nil
}

// Get returns content as bytes, read once and verified. It fails as Open does, and with
// PackageTooLarge if there are more than most bytes.
func (s *Store) Get(ctx context.Context, digest oci.Digest, most int64) ([]byte, error) {
	path := s.blobPath(digest)
	data, err := readRegular(ctx, path, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, oci.ErrBlobNotFound.New(nil, "%s is not in the store", digest)
	}
	if err != nil {
		return nil, err
	}
	if got := oci.DigestOf(data); got != digest {
		s.quarantine(path, digest.Hex())
		return nil,
			oci.ErrDigestMismatch.New(nil, "the entry of the store for %s has digest %s and was quarantined", digest, got)
	}
	s.touch(path)
	return data, nil
}

func (s *Store) blobPath(d oci.Digest) string {
	hex := d.Hex()
	if hex == "" {
		hex = "none"
	}
	return filepath.Join(s.dir, blobsDir, hex[:2], hex)
}

// Artifact returns the artifact with a root in the store. It fails with BlobNotFound if
// the root is absent. Other content of the artifact may be absent, for example after a
// fetch of the package layer only.
func (s *Store) Artifact(ctx context.Context, root oci.Digest, limits oci.Limits) (oci.Artifact, error) {
	raw, err := s.Get(ctx, root, limits.WithDefaults().Manifest)
	if err != nil {
		return nil, err
	}
	doc, err := oci.ParseDocument(raw, "", limits)
	if err != nil {
		return nil, err
	}
	return storeArtifact{store: s, root: oci.Descriptor{MediaType: doc.MediaType, Digest: root, Size: int64(len(raw))}},
		nil
}

// Add stores an artifact with all of its content, for example from a file on a machine
// without a registry. It verifies the content and stores the root last.
func (s *Store) Add(ctx context.Context, a oci.Artifact, limits oci.Limits) error {
	return oci.Walk(ctx, a, limits, func(ctx context.Context, d oci.Descriptor, raw []byte) error {
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
	root  oci.Descriptor
}

func (a storeArtifact) Root() oci.Descriptor { return a.root }

func (a storeArtifact) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return a.store.Open(ctx, d.Digest)
}

// OpenVerified implements [oci.VerifiedArtifact]: the store verifies each blob that
// it opens.
func (a storeArtifact) OpenVerified(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return a.store.Open(ctx, d.Digest)
}

// PackageYAML returns the file package.yaml of a manifest whose layers are in the
// store, as [oci.PackageYAML] does. It fails with ErrBlobNotFound when a layer is missing.
func (s *Store) PackageYAML(ctx context.Context, m oci.Manifest, limits oci.Limits) ([]byte, error) {
	return oci.PackageYAML(ctx, storeArtifact{store: s}, m, limits)
}
