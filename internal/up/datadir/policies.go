package datadir

import (
	"errors"
	"os"
	"path/filepath"
)

// WritePolicies writes objects, by the names of their files, to a directory that has no others, and returns its path.
// Without objects it returns an empty path.
func (d *Dir) WritePolicies(objects map[string]any) (string, error) {
	path := d.File("policies")
	if err := os.RemoveAll(path); err != nil {
		return "", unusable(err, d.Path, "cannot remove the former admission policies")
	}
	if len(objects) == 0 {
		return "", nil
	}
	err := os.Mkdir(path, 0o700)
	for name, o := range objects {
		err = errors.Join(err, WriteJSON(filepath.Join(path, name), o))
	}
	if err != nil {
		return "", unusable(err, d.Path, "cannot write the admission policies")
	}
	return path, nil
}
