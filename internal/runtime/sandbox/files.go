package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

const (
	// filesMount is the folder with the files of a runtime. Each configured path is a
	// link into it.
	filesMount = "/.xpkg-files"
	// currentFiles is the link to the current generation, as in secret volumes. Libraries
	// that watch certificates support this kind of replacement.
	currentFiles = "..data"
	// newFiles is the prefix of the names of generations.
	newFiles = "..gen-"
)

// files is the folder on the host with the files of a runtime, which are replaced together,
// atomically.
type files struct{ dir string }

// write replaces all files. A process with an open file keeps the old content.
func (f files) write(content map[string][]byte) error {
	// The mode does not depend on the umask of this process.
	if err := errors.Join(os.MkdirAll(f.dir, 0o755), os.Chmod(f.dir, 0o755)); err != nil {
		return err
	}
	generation, err := os.MkdirTemp(f.dir, newFiles)
	if err != nil {
		return err
	}
	if err := fill(generation, content); err != nil {
		return errors.Join(err, os.RemoveAll(generation))
	}
	link := generation + ".link"
	if err := os.Symlink(filepath.Base(generation), link); err != nil {
		return errors.Join(err, os.RemoveAll(generation))
	}
	if err := os.Rename(link, filepath.Join(f.dir, currentFiles)); err != nil {
		return errors.Join(err, os.Remove(link), os.RemoveAll(generation))
	}
	return f.removeOthers(filepath.Base(generation))
}

func fill(generation string, content map[string][]byte) error {
	for name, data := range content {
		path := filepath.Join(generation, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o444); err != nil {
			return err
		}
	}
	// The user of the runtime must be able to read the files, regardless of the umask of
	// this process. The parent folder keeps out other users of the machine.
	return filepath.WalkDir(generation, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o444)
	})
}

func (f files) removeOthers(current string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != current && strings.HasPrefix(e.Name(), newFiles) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}

// path returns the host path of a file of the runtime.
func (f files) path(name string) string {
	return filepath.Join(f.dir, currentFiles, filepath.FromSlash(name))
}

func sameFiles(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, bytes.Equal)
}

func closeAll(files ...*os.File) error {
	var err error
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

func ignoreAbsent(err error) error { return ignore(err, fs.ErrNotExist) }

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
