package filetree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is the number of nested folders that are open at once. Deeper ones are moved up before they are removed.
const maxDepth = 32

// Remove removes a tree of any depth, including folders without permissions, which an overlay leaves behind. It follows
// no symbolic link. It is not an error if the tree does not exist.
//
// A hostile program may have created the tree, so the number of open files and the length of
// messages are limited.
func Remove(dir string) error {
	if err := (&remover{}).remove(unix.AT_FDCWD, dir, 0); err != nil {
		return &os.PathError{Op: "remove", Path: dir, Err: err}
	}
	return nil
}

// remover removes a tree.
type remover struct {
	// top is the open folder at the top of the tree.
	top int
	// moved is the number of names that were tried for folders that moved to the top.
	moved int
}

// empty removes all entries of a folder. The entries of the top have the depth 1.
func (r *remover) empty(folder *os.File, depth int) error {
	const batch = 1024
	// Reading a folder that changes at the same time may miss entries, so it is read again until it
	// is empty.
	for {
		if _, err := folder.Seek(0, io.SeekStart); err != nil {
			return err
		}
		removed := 0
		for {
			names, err := folder.Readdirnames(batch)
			for _, name := range names {
				if err := r.remove(int(folder.Fd()), name, depth); err != nil {
					return err
				}
			}
			removed += len(names)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if removed == 0 {
			return nil
		}
	}
}

// remove removes an entry of a folder. The depth of the top itself is 0.
func (r *remover) remove(folder int, name string, depth int) error {
	err := unix.Unlinkat(folder, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	child, openErr := openFolder(folder, name)
	if openErr != nil {
		return failed(name, err)
	}
	defer child.Close()
	switch {
	case depth == 0:
		r.top = int(child.Fd())
	case depth > maxDepth:
		return failed(name, r.moveUp(folder, name))
	}
	if err := r.empty(child, depth+1); err != nil {
		return err
	}
	return failed(name, unix.Unlinkat(folder, name, unix.AT_REMOVEDIR))
}

// failed adds the name of an entry to an error.
func failed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("entry %.100q: %w", name, err)
}

// moveUp moves a folder to the top of the tree, which is read again until it is empty.
func (r *remover) moveUp(folder int, name string) error {
	for {
		r.moved++
		to := ".removed-" + strconv.Itoa(r.moved)
		err := unix.Renameat2(folder, name, r.top, to, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) {
			// The file system does not support the flag. Without it, a rename replaces only an
			// empty folder.
			err = unix.Renameat(folder, name, r.top, to)
		}
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
}

// openFolder opens a folder, regardless of its mode, and makes it writable for its owner.
func openFolder(at int, name string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags|unix.O_RDONLY, 0)
	if errors.Is(err, unix.EACCES) {
		if err := allow(at, name, flags); err != nil {
			return nil, err
		}
		fd, err = unix.Openat(at, name, flags|unix.O_RDONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	folder := os.NewFile(uintptr(fd), name)
	if err := folder.Chmod(0o700); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// allow sets the mode of a folder so that its owner can open it.
func allow(at int, name string, flags int) error {
	fd, err := unix.Openat(at, name, flags|unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700), unix.Close(fd))
}
