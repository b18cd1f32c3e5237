package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Entry is an entry of a store: a blob, or a value that was derived from one.
type Entry struct {
	// Digest is the blob, or the blob that the value was derived from.
	Digest oci.Digest
	// Name and Version are from the key of a derived value; Name is empty for a blob.
	Name    string
	Version int
	// Size is in bytes.
	Size int64
	// LastUsed is the time of the last read or write; the zero time if unknown.
	LastUsed time.Time
	// stamp is the modification time of the file.
	stamp time.Time
}

// IsDerived reports whether the entry can be computed again from a blob.
func (e Entry) IsDerived() bool { return e.Name != "" }

// String returns the entry for display.
func (e Entry) String() string {
	if e.IsDerived() {
		return e.Name + " of " + e.Digest.String()
	}
	return e.Digest.String()
}

func (e Entry) key() DerivedKey {
	return DerivedKey{Digest: e.Digest, Name: e.Name, Version: e.Version}
}

func (s *Store) entryPath(e Entry) string {
	if e.IsDerived() {
		return s.derivedPath(e.key())
	}
	return s.blobPath(e.Digest)
}

// Entries returns all entries of the store, by digest, a blob before its derived values.
// It skips files with other names.
func (s *Store) Entries(ctx context.Context) ([]Entry, error) {
	var entries []Entry
	add := func(e Entry, ok bool, info fs.FileInfo) {
		if !ok {
			return
		}
		e.Size, e.stamp = info.Size(), info.ModTime()
		// A time in the future was recorded with a wrong clock.
		if e.stamp.Unix() > 0 && !e.stamp.After(s.now().Add(time.Hour)) {
			e.LastUsed = e.stamp
		}
		entries = append(entries, e)
	}
	err := s.files(ctx, blobsDir, func(path string, info fs.FileInfo) {
		d, ok := digestOfFile(path)
		add(Entry{Digest: d}, ok && s.blobPath(d) == path, info)
	})
	err = errors.Join(err, s.files(ctx, derivedDir, func(path string, info fs.FileInfo) {
		e, ok := derivedOfFile(filepath.Base(path))
		add(e, ok, info)
	}))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, Entry.Compare)
	return entries, nil
}

// Compare orders entries by digest, name and version.
func (e Entry) Compare(other Entry) int {
	if c := e.Digest.Compare(other.Digest); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(e.Name, other.Name), cmp.Compare(e.Version, other.Version))
}

// Bytes returns the size in bytes of all entries and temporary files, without records. A temporary file that another
// process renames to an entry meanwhile counts once.
func (s *Store) Bytes(ctx context.Context) (int64, error) {
	// Temporary files are read before the entries that they become, and entries before they are put aside, so that no
	// file is missed.
	var temporary []fs.FileInfo
	if err := s.files(ctx, tempDir, func(_ string, info fs.FileInfo) { temporary = append(temporary, info) }); err != nil {
		return 0, err
	}
	var total int64
	for _, info := range temporary {
		total += info.Size()
	}
	for _, folder := range []string{blobsDir, derivedDir} {
		err := s.files(ctx, folder, func(_ string, info fs.FileInfo) {
			if !slices.ContainsFunc(temporary, func(t fs.FileInfo) bool { return os.SameFile(t, info) }) {
				total += info.Size()
			}
		})
		if err != nil {
			return 0, err
		}
	}
	aside, err := s.sum(ctx, quarantineDir)
	return total + aside, err
}

func (s *Store) sum(ctx context.Context, folders ...string) (int64, error) {
	var total int64
	for _, folder := range folders {
		if err := s.files(ctx, folder, func(_ string, info fs.FileInfo) { total += info.Size() }); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// Evict removes an entry, and reports whether it did. It keeps an entry that is open or
// was used since it was listed. Call it within Exclusive.
func (s *Store) Evict(e Entry) (bool, error) {
	path := s.entryPath(e)
	f, err := openRegular(path)
	if err != nil {
		return false, nil // Another process removed it.
	}
	defer f.Close()
	if !tryLock(f, true) {
		return false, nil
	}
	if info, err := f.Stat(); err != nil || !info.ModTime().Equal(e.stamp) {
		return false, nil // It is in use, so it stays.
	}
	if err := s.change("evict", func() error { return os.Remove(path) }); err != nil {
		return false, s.writeError(err)
	}
	return true, nil
}

// Sweep removes quarantined files, and temporary files of killed processes, that are
// older than a time. It returns the number of removed bytes. Call it within Exclusive.
func (s *Store) Sweep(ctx context.Context, before time.Time) (int64, error) {
	var freed int64
	remove := func(path string, info fs.FileInfo) {
		if s.change("sweep", func() error { return os.Remove(path) }) == nil {
			freed += info.Size()
		}
	}
	err := s.files(ctx, quarantineDir, remove)
	err = errors.Join(err, s.files(ctx, tempDir, func(path string, info fs.FileInfo) {
		if info.ModTime().After(before) {
			return
		}
		f, err := openRegular(path)
		if err != nil {
			return
		}
		if tryLock(f, true) {
			remove(path, info)
		}
		_ = f.Close()
	}))
	return freed, err
}

// Check reads an entry and verifies its digest. If the entry is damaged, Check
// quarantines it and fails with ErrDigestMismatch.
func (s *Store) Check(ctx context.Context, e Entry) error {
	if e.IsDerived() {
		_, err := s.Peek().GetDerived(ctx, e.key())
		return err
	}
	f, err := s.Peek().Open(ctx, e.Digest)
	if err != nil {
		return err
	}
	return f.Close()
}

// Document returns a manifest or an index in the store. It returns nil without an error
// if the blob has another type.
func (s *Store) Document(ctx context.Context, d oci.Digest, limits oci.Limits) (*oci.Document, error) {
	limits = limits.WithDefaults()
	f, err := openRegular(s.blobPath(d))
	if err != nil {
		return nil, oci.ErrBlobNotFound.New(err, "%s is not in the store", d)
	}
	var first [1]byte
	n, _ := f.Read(first[:])
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if n == 0 || first[0] != '{' || info.Size() > limits.Manifest {
		return nil, nil
	}
	raw, err := s.Peek().Get(ctx, d, limits.Manifest)
	if err != nil {
		return nil, err
	}
	doc, err := oci.ParseDocument(raw, "", limits)
	if err != nil {
		return nil, nil // A configuration, for example.
	}
	return doc, nil
}

// files calls visit for each regular file below a folder of the store. It skips files
// that are removed meanwhile.
func (s *Store) files(ctx context.Context, folder string, visit func(path string, info fs.FileInfo)) error {
	err := filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err == nil {
			visit(path, info)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return ErrStoreWrite.New(err, "cannot list the store %s", s.dir)
	}
	return err
}

// digestOfFile returns the digest in the name of a file of the store.
func digestOfFile(path string) (oci.Digest, bool) {
	d, err := oci.ParseDigest("sha256:" + filepath.Base(path))
	return d, err == nil
}

// derivedOfFile parses a file name of derivedPath.
func derivedOfFile(file string) (Entry, bool) {
	sum, rest, _ := strings.Cut(file, "-")
	end := strings.LastIndex(rest, "-")
	d, ok := digestOfFile(sum)
	if !ok || end < 1 {
		return Entry{}, false
	}
	version, err := strconv.Atoi(rest[end+1:])
	e := Entry{Digest: d, Name: rest[:end], Version: version}
	return e, err == nil && derivedFile(e.key()) == file
}

// derivedFile returns the file name of a derived value.
func derivedFile(key DerivedKey) string {
	return fmt.Sprintf("%s-%s-%d", key.Digest.Hex(), oci.ToDNSLabel(key.Name), key.Version)
}
