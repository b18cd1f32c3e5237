package datadir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

const (
	versionName = "version.json"
	// ours is the value of version.Kind in the data directories of xpkg.
	ours = "xpkg control plane"
	// layout is the number of the layout that this version of xpkg reads and writes.
	layout = 1
)

// version is the content of version.json.
type version struct {
	Kind    string    `json:"kind"`
	Layout  int       `json:"layout"`
	Created time.Time `json:"created"`
}

// Check fails with ErrUnsafe if another user can change the directory, with ErrForeign if xpkg did
// not create it, and with ErrVersion if it has another layout. It writes nothing, and accepts a
// missing directory.
func Check(path string) error {
	if err := checkPrivate(path); err != nil {
		return err
	}
	v, err := readVersion(path)
	if errors.Is(err, fs.ErrNotExist) {
		return checkNew(path)
	}
	if err != nil {
		return unusable(err, path, "cannot read data directory %s", path)
	}
	if v.Kind != ours {
		return ErrForeign.New(nil, "%s is not a data directory of xpkg", path)
	}
	if v.Layout != layout {
		return ErrVersion.New(nil, "data directory %s has layout %d, and this xpkg knows layout %d", path, v.Layout, layout)
	}
	return nil
}

// checkNew accepts a directory that does not exist or is empty, apart from the lock of a
// process that is creating it at the same time.
func checkNew(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unusable(err, path, "cannot read data directory %s", path)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != LockName && name != pidName && name != ownerName {
			return ErrForeign.New(nil, "%s is not a data directory of xpkg: it has %s in it", path, name)
		}
	}
	return nil
}

// Created returns the time at which a directory was created.
func Created(path string) (time.Time, error) {
	v, err := readVersion(path)
	return v.Created, err
}

func readVersion(path string) (version, error) {
	content, err := os.ReadFile(filepath.Join(path, versionName))
	if err != nil {
		return version{}, err
	}
	var v version
	if err := json.Unmarshal(content, &v); err != nil {
		return version{}, err
	}
	return v, nil
}

// writeVersion writes the kind and the layout of a new directory.
func (d *Dir) writeVersion(now time.Time) error {
	if _, err := readVersion(d.Path); err == nil {
		return nil
	}
	return WriteJSON(d.File(versionName), version{Kind: ours, Layout: layout, Created: now.UTC()})
}

// WriteJSON writes a file as JSON, as WriteFile does.
func WriteJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(content, '\n'))
}

// WriteFile writes a file atomically, readable only by its owner.
func WriteFile(path string, content []byte) error {
	return fileutil.ReplaceFile(path, fileutil.PrivateMode, content)
}
