package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WritePolicies writes objects, each to a file, to a directory that has no others, and returns its path. Without objects
// it returns an empty path.
func (d *Dir) WritePolicies(objects []client.Object) (string, error) {
	path := d.File("policies")
	if err := os.RemoveAll(path); err != nil {
		return "", unusable(err, d.Path, "cannot remove the former admission policies")
	}
	if len(objects) == 0 {
		return "", nil
	}
	err := os.Mkdir(path, 0o700)
	for _, o := range objects {
		kind := strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind)
		err = errors.Join(err, WriteJSON(filepath.Join(path, kind+"-"+o.GetName()+".json"), o))
	}
	if err != nil {
		return "", unusable(err, d.Path, "cannot write the admission policies")
	}
	return path, nil
}
