package unpack

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// Names of whiteouts (OCI image specification, "Applying Changesets").
const (
	// whiteoutMeta is the prefix of the metadata files of old tools, and of the marker of
	// an opaque directory.
	whiteoutMeta = ".wh..wh."
)

// whiteout removes files of lower layers. It keeps files of the same layer, regardless of
// the order of entries.
func (u *unpacker) whiteout(dir, base string) error {
	name := strings.TrimPrefix(base, tarfile.WhiteoutPrefix)
	if base != tarfile.OpaqueWhiteout && strings.HasPrefix(base, whiteoutMeta) {
		return nil
	}
	if name == "" || name == "." || name == ".." {
		return ErrUnsafeImage.New(nil, "the layer has a whiteout named %q", text.Clip(base))
	}
	folder, err := u.find(dir, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, oci.ErrBrokenLayer) {
		return nil // There is nothing to remove.
	}
	u.leaveParent()
	switch {
	case err != nil:
	case base == tarfile.OpaqueWhiteout:
		err = u.removeAllLower(folder)
	default:
		err = u.removeLower(path.Join(folder, name))
	}
	return writeFailure(err, path.Join(dir, base))
}

// removeLower removes a path, except for the files of the current layer.
func (u *unpacker) removeLower(at string) error {
	if !u.written[at] {
		return u.root.RemoveAll(at)
	}
	info, err := u.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	return u.removeAllLower(at)
}

func (u *unpacker) removeAllLower(folder string) error {
	children, err := fs.ReadDir(u.root.FS(), folder)
	if err != nil {
		return err
	}
	// Images have few whiteouts, but repeated ones would visit the same entries every
	// time.
	if u.looked += len(children); u.looked > 4*u.limits.Entries {
		return ErrImageTooLarge.New(nil, "the whiteouts of the image visit more than %d entries", 4*u.limits.Entries)
	}
	for _, child := range children {
		if err := u.removeLower(path.Join(folder, child.Name())); err != nil {
			return err
		}
	}
	return nil
}
