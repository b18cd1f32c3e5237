package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
)

// ErrUnsafeStore is the code for a directory that other users could change.
var ErrUnsafeStore = errcode.Code{
	Name: "UnsafeStore", Class: errcode.Untrusted,
	Cause: "The directory of the store is a link, belongs to another user, can be changed or replaced by others, or contains other files.",
	Fix:   "Name a directory that does not exist yet, in a directory that you own; it is created with the right permissions.",
}

// ErrStoreInUse is the code for a store of another format that another process is
// using.
var ErrStoreInUse = errcode.Code{
	Name: "StoreInUse", Class: errcode.Conflict,
	Cause: "The store was created by another version of xpkg that is still running.",
	Fix:   "Stop the other process, or use another directory.",
}

// storeFormat is the version of the layout below. Open empties a store of another
// version, because its content can be fetched again. It keeps records, because they exist
// only in the store.
const storeFormat = "xpkg store 1\n"

const (
	formatFile    = "format"
	lockFile      = "lock"
	changesFile   = "changes.lock"
	blobsDir      = "blobs"
	derivedDir    = "derived"
	recordsDir    = "records"
	tempDir       = "tmp"
	quarantineDir = "quarantine"

	// tempPrefix is the prefix of the names of temporary files.
	tempPrefix = "put-"

	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// folders are the directories of a store.
var folders = []string{blobsDir, derivedDir, recordsDir, tempDir, quarantineDir}

// Open opens the store in dir and creates it if it does not exist. It refuses a directory
// that is a symbolic link, belongs to another user, is writable by others, or contains
// other files. Use a separate directory: a Kubernetes volume is usually writable by
// everyone, but a directory that the store creates in it is not.
func Open(dir string, opts Options) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, ErrStoreWrite.New(err, "cannot open the store %s", dir)
	}
	if err := os.MkdirAll(abs, dirMode); err != nil {
		return nil, ErrStoreWrite.New(err, "cannot create the store %s", abs)
	}
	if err := checkStoreDir(abs); err != nil {
		return nil, err
	}
	s := &Store{
		dir: abs, now: opts.Now, makeRoom: opts.MakeRoom, before: opts.Before,
		lock: flock.New(filepath.Join(abs, lockFile), flock.SetPermissions(fileMode)), changes: newChanges(abs),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkStoreDir checks that no other user can replace files of the store.
func checkStoreDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return ErrStoreWrite.New(err, "cannot open the store %s", dir)
	case !info.IsDir():
		return ErrUnsafeStore.New(nil, "the store %s is a %s and not a directory", dir, info.Mode().Type())
	case info.Mode().Perm()&0o022 != 0:
		return ErrUnsafeStore.New(nil, "the store %s is writable by others (%s)", dir, info.Mode().Perm())
	}
	if err := checkOwner(info); err != nil {
		return ErrUnsafeStore.New(err, "the store %s belongs to another user", dir)
	}
	return nil
}

// prepare creates or converts the directory. A process with the exclusive lock cleans up;
// all others wait for it.
func (s *Store) prepare() error {
	alone, err := s.lock.TryLock()
	if err != nil {
		return ErrStoreWrite.New(err, "cannot lock the store %s", s.dir)
	}
	if alone {
		current, err := s.format()
		if err != nil {
			return err
		}
		if err := s.clean(current); err != nil {
			return err
		}
	}
	// Between the exclusive and the shared lock another version can take over, so the
	// format is checked again.
	if err := s.lock.RLock(); err != nil {
		return ErrStoreWrite.New(err, "cannot share the store %s", s.dir)
	}
	current, err := s.format()
	if err == nil && current != storeFormat {
		err = ErrStoreInUse.New(nil, "the store %s has another format and is in use", s.dir)
	}
	return err
}

// format returns the version of the store. A directory without a version must be empty,
// or contain only the files of a process that was killed while it created the store.
func (s *Store) format() (string, error) {
	data, err := readRegular(context.Background(), filepath.Join(s.dir, formatFile), 1<<10)
	if err == nil {
		return string(data), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", ErrUnsafeStore.New(err, "the format of the store %s cannot be read", s.dir)
	}
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(s.dir, path); err == nil && !beginning(rel, d) {
			return ErrUnsafeStore.New(fmt.Errorf("it holds %q", rel), "the directory %s is not a store", s.dir)
		}
		return err
	})
	if err != nil {
		return "", s.writeError(err)
	}
	return "", nil
}

// beginning reports whether an incomplete new store can have such an entry: its locks,
// empty directories, or the format file under its temporary name.
func beginning(path string, d fs.DirEntry) bool {
	if d.IsDir() {
		return path == "." || slices.Contains(folders, path)
	}
	return path == lockFile || path == changesFile ||
		d.Type().IsRegular() && filepath.Dir(path) == tempDir && strings.HasPrefix(d.Name(), tempPrefix)
}

func (s *Store) clean(current string) error {
	stale := []string{tempDir, quarantineDir}
	if current != storeFormat {
		stale = append(stale, blobsDir, derivedDir)
	}
	for _, name := range stale {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			return ErrStoreWrite.New(err, "cannot clean the store %s", s.dir)
		}
	}
	for _, name := range folders {
		if err := os.MkdirAll(filepath.Join(s.dir, name), dirMode); err != nil {
			return ErrStoreWrite.New(err, "cannot create the store %s", s.dir)
		}
	}
	if current == storeFormat {
		return nil
	}
	return s.writeSmall(filepath.Join(s.dir, formatFile), storeFormat)
}

// openRegular opens a regular file for reading. It rejects links and all other files.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow|noWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readRegular reads a regular file of at most most bytes.
func readRegular(ctx context.Context, path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, oci.ErrManifestTooLarge.New(nil, "%s has %d bytes, at most %d are allowed", path, info.Size(), most)
	}
	data := make([]byte, 0, info.Size()+1)
	return appendAll(data, io.LimitReader(ctxio.Reader(ctx, f), most))
}

// appendAll reads r to its end, with at most one allocation if data has the capacity.
func appendAll(data []byte, r io.Reader) ([]byte, error) {
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
