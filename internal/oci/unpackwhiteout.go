package oci

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// The names of whiteouts (OCI image specification, "Applying Changesets").
const (
	whiteoutPrefix = ".wh."
	// whiteoutMeta begins the names of what old tools kept beside their layers, and
	// of the mark of an opaque folder.
	whiteoutMeta = ".wh..wh."
)

// whiteout removes what lower layers brought. What the same layer brought stays,
// whatever comes first.
func (u *unpacker) whiteout(dir, base string) error {
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if base != opaqueRoot && strings.HasPrefix(base, whiteoutMeta) {
		return nil
	}
	if name == "" || name == "." || name == ".." {
		return ErrUnsafeImage.New(nil, "the layer has a whiteout named %q", clip(base))
	}
	folder, err := u.find(dir, false)
	if errors.Is(err, fs.ErrNotExist) || ErrBrokenLayer.Is(err) {
		return nil // There is nothing to remove.
	}
	u.leaveParent()
	switch {
	case err != nil:
	case base == opaqueRoot:
		err = u.removeAllLower(folder)
	default:
		err = u.removeLower(path.Join(folder, name))
	}
	return writeFailure(err, path.Join(dir, base))
}

// removeLower removes a place but for what the present layer wrote.
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
	// Whiteouts are few, but one that is repeated would be looked for again and again.
	if u.looked += len(children); u.looked > 4*u.limits.Entries {
		return ErrImageTooLarge.New(nil, "the whiteouts of the image look at more than %d entries", 4*u.limits.Entries)
	}
	for _, child := range children {
		if err := u.removeLower(path.Join(folder, child.Name())); err != nil {
			return err
		}
	}
	return nil
}
