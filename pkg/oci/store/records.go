package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// maxRecord bounds the size of one record.
const maxRecord = 16 << 20

// Record is a small file in which a user of a store keeps information about its content,
// such as names. Records are never evicted, and survive a change of the store's format.
type Record struct {
	// Kind is a DNS label.
	Kind string
	// Name distinguishes records of one kind. It can be any text. Records does not return
	// it; callers that need the name store it in the data.
	Name string
	Data []byte
	// path is the file of a record that was read.
	path string
}

// PutRecord writes a record. It replaces a record with the same kind and name.
func (s *Store) PutRecord(r Record) error { return s.writeSmall(s.recordPath(r), string(r.Data)) }

// GetRecord returns the record with a kind and a name. It fails with ErrBlobNotFound if
// there is none.
func (s *Store) GetRecord(ctx context.Context, kind, name string) (Record, error) {
	r := Record{Kind: kind, Name: name}
	r.path = s.recordPath(r)
	data, err := readRegular(ctx, r.path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, oci.ErrBlobNotFound.New(nil, "the store has no record %q", text.Clip(name))
	}
	r.Data = data
	return r, err
}

// RemoveRecord removes a record. It returns nil if the record does not exist.
func (s *Store) RemoveRecord(r Record) error {
	err := s.change("remove a record", func() error { return os.Remove(s.recordPath(r)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.writeError(err)
	}
	return nil
}

// Records returns all records of a kind, in no particular order.
func (s *Store) Records(ctx context.Context, kind string) ([]Record, error) {
	var all []Record
	err := s.files(ctx, filepath.Join(recordsDir, oci.ToDNSLabel(kind)), func(path string, _ fs.FileInfo) {
		all = append(all, Record{Kind: kind, path: path})
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		// A record that is removed meanwhile has no data.
		all[i].Data, err = readRegular(ctx, all[i].path, maxRecord)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s.writeError(err)
		}
	}
	return slices.DeleteFunc(all, func(r Record) bool { return r.Data == nil }), nil
}

// recordPath returns the path of a record. It contains no part of the name, which can be
// any text, and no digest of content.
func (s *Store) recordPath(r Record) string {
	if r.path != "" {
		return r.path
	}
	return filepath.Join(s.dir, recordsDir, oci.ToDNSLabel(r.Kind), oci.DigestOf([]byte(r.Name)).Hex()+".record")
}
