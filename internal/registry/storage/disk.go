package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// disk changes files. Tests make each change fail with before, which gets the name of the call and its path.
type disk struct {
	before func(call, path string) error
	// volatile means that no call waits for the disk.
	volatile bool

	mu sync.Mutex
	// folders are the folders whose names are on the disk.
	folders map[string]bool
}

func (d *disk) check(call, path string) error {
	if d.before == nil {
		return nil
	}
	return d.before(call, path)
}

// create creates a file with a name of its own.
func (d *disk) create(dir, pattern string) (*os.File, error) {
	if err := d.check("create", filepath.Join(dir, pattern)); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, pattern)
}

// write writes the content of an open file.
func (d *disk) write(f *os.File, content []byte) (int, error) {
	if err := d.check("write", f.Name()); err != nil {
		return 0, err
	}
	return f.Write(content)
}

// sync waits until the content of an open file is on the disk.
func (d *disk) sync(f *os.File) error {
	if err := d.check("sync", f.Name()); err != nil || d.volatile {
		return err
	}
	return f.Sync()
}

// rename gives an open file, whose content is on the disk, its name, and waits until the name is on the disk.
func (d *disk) rename(f *os.File, path string) error {
	if err := d.check("rename "+f.Name(), path); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return d.syncFolder(filepath.Dir(path))
}

// syncFolder waits until the names in a folder are on the disk. The system does not permit it for a folder that the
// process cannot read.
func (d *disk) syncFolder(dir string) error {
	if err := d.check("sync", dir); err != nil || d.volatile {
		return err
	}
	if err := fileutil.Sync(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// mkdir creates a folder below root, and waits until its name and those of its parents are on the disk. A former
// process can have created it without waiting.
func (d *disk) mkdir(root, dir string) error {
	d.mu.Lock()
	isKnown := d.folders[dir]
	d.mu.Unlock()
	if _, err := os.Stat(dir); isKnown && err == nil {
		return nil
	}
	if err := d.check("mkdir", dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // The content of a registry is for other users, too.
		return err
	}
	for at := dir; at != root && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		if err := d.syncFolder(at); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folders == nil {
		d.folders = map[string]bool{}
	}
	d.folders[dir] = true
	return nil
}

// remove removes a file or an empty folder. A missing one is no error.
func (d *disk) remove(path string) error {
	if err := d.check("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); !isAbsent(err) {
		return err
	}
	return nil
}

// replace replaces a file, as a whole.
func (d *disk) replace(path string, content []byte) (_ fs.FileInfo, err error) {
	f, err := d.create(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = f.Close() // Its content is on the disk, or it is removed.
		if err != nil {
			_ = d.remove(f.Name()) // The next start removes it.
		}
	}()
	if _, err := d.write(f, content); err != nil {
		return nil, err
	}
	if err := d.sync(f); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return info, d.rename(f, path)
}
