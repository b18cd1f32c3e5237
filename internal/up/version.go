package up

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
	// ours is what tells our directories from others.
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

// checkDirectory refuses a directory that another user can change, that xpkg did not
// create, or that has another layout. It writes nothing.
func checkDirectory(path string) error {
	if err := checkPrivate(path); err != nil {
		return err
	}
	v, err := readVersion(path)
	if errors.Is(err, fs.ErrNotExist) {
		return checkNew(path)
	}
	if err != nil {
		return ErrDataDirUnusable.New(err, "cannot read data directory %s", path)
	}
	if v.Kind != ours {
		return ErrDataDirForeign.New(nil, "%s is not a data directory of xpkg", path)
	}
	if v.Layout != layout {
		return ErrDataDirVersion.New(nil, "data directory %s has layout %d, and this xpkg knows layout %d", path, v.Layout, layout)
	}
	return nil
}

// checkNew accepts a directory that does not exist or is empty. Our lock may be
// there already: another process can be making the directory at the same time.
func checkNew(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return ErrDataDirUnusable.New(err, "cannot read data directory %s", path)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lockName && name != pidName && name != ownerName {
			return ErrDataDirForeign.New(nil, "%s is not a data directory of xpkg: it has %s in it", path, name)
		}
	}
	return nil
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

// writeVersion marks a new directory as ours.
func (d *directory) writeVersion(now time.Time) error {
	if _, err := readVersion(d.path); err == nil {
		return nil
	}
	return writeJSON(d.file(versionName), version{Kind: ours, Layout: layout, Created: now.UTC()})
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return replace(path, append(content, '\n'))
}

// replace writes a file atomically, readable only by its owner.
func replace(path string, content []byte) error {
	return fileutil.ReplaceFile(path, fileutil.PrivateMode, content)
}
