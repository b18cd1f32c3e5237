package unpack

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// entry applies one entry of a layer.
func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := u.entryName(h.Name)
	if err != nil {
		return err
	}
	// Some tools pack the devices of the machine that they run on.
	if name == "." || strings.HasPrefix(name, "dev/") {
		return nil
	}
	if base := path.Base(name); strings.HasPrefix(base, tarfile.WhiteoutPrefix) {
		return u.whiteout(path.Dir(name), base)
	}
	switch kind := tarfile.Irregular(h); {
	case kind == "", h.Typeflag == tar.TypeDir, h.Typeflag == tar.TypeSymlink,
		h.Typeflag == tar.TypeLink && !strings.HasPrefix(kind, "sparse"):
	default:
		return ErrUnsafeImage.New(nil, "the entry %q is a %s", text.Clip(h.Name), kind)
	}
	folder, err := u.parentOf(name)
	if err != nil {
		return err
	}
	return writeFailure(u.write(h, path.Join(folder, path.Base(name)), r), h.Name)
}

// write writes an entry to its path, which contains no symbolic link.
func (u *unpacker) write(h *tar.Header, at string, r io.Reader) error {
	if h.Typeflag == tar.TypeReg {
		return u.file(at, h, r)
	}
	u.leaveParent()
	switch h.Typeflag {
	case tar.TypeDir:
		return u.folder(at, h)
	case tar.TypeSymlink:
		return u.symlink(at, h.Linkname)
	}
	return u.hardlink(at, h.Linkname)
}

// permissions returns the permissions of an entry. This process can read, replace and
// remove each unpacked file.
func permissions(h *tar.Header) fs.FileMode {
	mode := h.FileInfo().Mode()
	if h.Typeflag == tar.TypeDir {
		return mode&(fs.ModePerm|fs.ModeSticky) | 0o700
	}
	return mode&fs.ModePerm | 0o400
}

func (u *unpacker) folder(at string, h *tar.Header) error {
	info, err := u.root.Lstat(at)
	if err != nil || !info.IsDir() {
		if err := u.clear(at); err != nil {
			return err
		}
		if err := u.root.Mkdir(at, 0o700); err != nil {
			return err
		}
	}
	u.mark(at)
	return u.root.Chmod(at, permissions(h))
}

// file writes a regular file. The parent is open.
func (u *unpacker) file(at string, h *tar.Header, r io.Reader) (err error) {
	name := path.Base(at)
	create := func() (*os.File, error) { return u.parent.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) }
	f, err := create()
	if errors.Is(err, fs.ErrExist) {
		if err := u.parent.dir.RemoveAll(name); err != nil {
			return err
		}
		f, err = create()
	}
	if err != nil {
		return err
	}
	u.mark(at)
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, r); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return oci.ErrBrokenLayer.New(nil, "the tar ends within %q", text.Clip(h.Name))
		}
		return err
	}
	if err := f.Chmod(permissions(h)); err != nil {
		return err
	}
	// Some languages compare the time of a file with the time of its compiled form. A
	// time that the file system rejects is not an error.
	_ = u.parent.dir.Chtimes(name, time.Time{}, h.ModTime)
	return nil
}

// symlink creates a link that stays within the root. A process with this root directory
// sees the same target.
func (u *unpacker) symlink(at, target string) error {
	if target == "" || strings.ContainsRune(target, 0) {
		return ErrUnsafeImage.New(nil, "the symbolic link %q leads to %q", text.Clip(at), text.Clip(target))
	}
	if err := u.clear(at); err != nil {
		return err
	}
	u.mark(at)
	return u.root.Symlink(confine(at, target), at)
}

// hardlink creates a hard link to an existing file.
func (u *unpacker) hardlink(at, target string) error {
	name, err := u.entryName(target)
	if err != nil {
		return err
	}
	folder, err := u.find(path.Dir(name), false)
	if err != nil {
		return missingLink(err, at, target)
	}
	from := path.Join(folder, path.Base(name))
	info, err := u.root.Lstat(from)
	switch {
	case err != nil:
		return missingLink(err, at, target)
	case from == at:
		return nil
	case info.Mode().Type() == fs.ModeSymlink:
		// A hard link to a relative symbolic link would have another target in another
		// folder.
		to, err := u.root.Readlink(from)
		if err != nil {
			return err
		}
		return u.symlink(at, path.Join("/", path.Dir(from), to))
	case !info.Mode().IsRegular():
		return ErrUnsafeImage.New(nil, "the hard link %q leads to %q, which is not a file", text.Clip(at), text.Clip(target))
	}
	if err := u.clear(at); err != nil {
		return err
	}
	u.mark(at)
	return missingLink(u.root.Link(from, at), at, target)
}

// missingLink distinguishes a hard link without a target from a disk failure.
func missingLink(err error, at, target string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return oci.ErrBrokenLayer.New(
			nil, "the hard link %q leads to %q, which does not exist", text.Clip(at), text.Clip(target),
		)
	}
	return err
}

// clear removes an existing file or directory.
func (u *unpacker) clear(at string) error {
	err := u.root.Remove(at)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return u.root.RemoveAll(at)
}

// mark records that this layer has written a path.
func (u *unpacker) mark(at string) {
	for ; at != "." && !u.written[at]; at = path.Dir(at) {
		u.written[at] = true
	}
}

// writeFailure classifies an error of the file system. A name that the file system
// rejects is a defect of the image.
func writeFailure(err error, name string) error {
	switch {
	case err == nil || errcode.Known(err):
		return err
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTDIR):
		return ErrUnsafeImage.New(err, "the entry %q is not a valid file name", text.Clip(name))
	}
	return ErrImageWrite.New(err, "cannot write %q of the image", text.Clip(name))
}
