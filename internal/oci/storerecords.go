package oci

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxRecord bounds what is read of one record.
const maxRecord = 16 << 20

// Record is a small file that the users of a store keep in it about its content,
// such as the names that it has. Nothing evicts records, and they outlive a change
// of the store's format.
type Record struct {
	// Kind is a DNS label.
	Kind string
	// Name tells the record from others of its kind. It can be any text.
	Name string
	Data []byte
}

// PutRecord writes a record, in the place of the one with its kind and name.
func (s *Store) PutRecord(r Record) error {
	return s.writeSmall(s.recordPath(r.Kind, r.Name), string(r.Data))
}

// RemoveRecord removes a record; one that is not there is no error.
func (s *Store) RemoveRecord(kind, name string) error {
	err := s.change("remove a record", func() error { return os.Remove(s.recordPath(kind, name)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.writeError(err)
	}
	return nil
}

// Records gives the data of all records of a kind, in no order.
func (s *Store) Records(ctx context.Context, kind string) ([][]byte, error) {
	var paths []string
	err := s.files(ctx, filepath.Join(recordsDir, ToDNSLabel(kind)), func(path string, _ fs.FileInfo) { paths = append(paths, path) })
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, path := range paths {
		data, err := readRegular(ctx, path, maxRecord)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, s.writeError(err)
		}
		all = append(all, data)
	}
	return all, nil
}

// recordPath never contains a part of the name: that can be any text.
func (s *Store) recordPath(kind, name string) string {
	return filepath.Join(s.dir, recordsDir, ToDNSLabel(kind), DigestOf([]byte(name)).Hex())
}
