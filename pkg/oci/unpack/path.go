package unpack

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// maxLinks is the maximum number of symbolic links in the path of an entry, which is the
// limit of Linux.
const maxLinks = 40

// entryName returns the path of an entry below the root, "." for the root itself. A
// leading slash means the root. It rejects every name with "..", even within the root: no
// tool writes one.
func (u *unpacker) entryName(name string) (string, error) {
	parts := strings.Split(name, "/")
	if name == "" || strings.ContainsRune(name, 0) || !utf8.ValidString(name) || slices.Contains(parts, "..") {
		return "", ErrUnsafeImage.New(nil, "an entry has the name %q", text.Clip(name))
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if clean == "" {
		return ".", nil
	}
	if depth := strings.Count(clean, "/"); depth > u.limits.Depth {
		return "", ErrImageTooLarge.New(
			nil, "the entry %q is below %d folders, at most %d are allowed", text.Clip(name), depth, u.limits.Depth,
		)
	}
	for _, part := range strings.Split(path.Dir(clean), "/") {
		if strings.HasPrefix(part, tarfile.WhiteoutPrefix) && !strings.HasPrefix(part, whiteoutMeta) {
			return "", ErrUnsafeImage.New(nil, "the entry %q is inside a whiteout", text.Clip(name))
		}
	}
	return clean, nil
}

// parentOf returns the directory of an entry, and creates it if necessary.
func (u *unpacker) parentOf(name string) (string, error) {
	dir := path.Dir(name)
	if u.parent.dir != nil && dir == u.parent.name {
		return u.parent.at, nil
	}
	u.leaveParent()
	at, err := u.find(dir, true)
	if err == nil {
		u.parent.dir, err = u.root.OpenRoot(at)
	}
	if err != nil {
		return "", writeFailure(err, name)
	}
	u.parent.name, u.parent.at = dir, at
	return at, nil
}

// leaveParent closes the folder of the last file, because the folder may be created or
// removed.
func (u *unpacker) leaveParent() {
	if u.parent.dir != nil {
		_ = u.parent.dir.Close() // Nothing is written through it.
		u.parent.dir = nil
	}
}

// find returns the path of a directory without symbolic links. It follows the links of
// lower layers within the root, as a process with this root directory does. It creates a
// missing directory, or returns fs.ErrNotExist.
func (u *unpacker) find(name string, make bool) (string, error) {
	at, links := ".", 0
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		info, err := u.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && make:
			if err := u.makeFolder(next); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case info.Mode().Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return "", ErrUnsafeImage.New(nil, "the path of %q contains more than %d symbolic links", text.Clip(name), maxLinks)
			}
			target, err := u.root.Readlink(next)
			if err != nil {
				return "", err
			}
			rest = append(strings.Split(target, "/"), rest...)
			continue
		case !info.IsDir():
			return "", oci.ErrBrokenLayer.New(nil, "%q is a folder in one entry and a file in another", text.Clip(next))
		}
		at = next
	}
	return at, nil
}

func (u *unpacker) makeFolder(at string) error {
	if err := u.root.Mkdir(at, 0o755); err != nil {
		return err
	}
	u.mark(at)
	return u.root.Chmod(at, 0o755)
}

// confine returns the target of a symbolic link as a relative path that cannot leave the
// root: it goes up to a common directory first, and then only down. A target outside of
// the root becomes a target below the root, as for a process with this root directory.
func confine(at, target string) string {
	if !path.IsAbs(target) {
		target = path.Join("/", path.Dir(at), target)
	}
	relative, err := filepath.Rel(filepath.FromSlash(path.Join("/", path.Dir(at))), filepath.FromSlash(path.Clean(target)))
	if err != nil {
		return "."
	}
	return filepath.ToSlash(relative)
}
