package fileutil

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// descriptorDir matches the directories in which a process finds its own descriptors.
var descriptorDir = lazyregexp.New(`^/proc/(\d+)/(task/\d+/)?fd$`)

// openDescriptor returns a duplicate of the descriptor that path stands for, as
// /dev/stderr and the /dev/fd/63 of a shell do. A path below another process's
// descriptors, or no such path, is reported as false. A duplicate shares the offset
// with the descriptor, so the output is not lost among its other writes.
func openDescriptor(path string) (*os.File, bool, error) {
	name := path
	for range maxLinks {
		dir, err := realDir(name)
		if err != nil {
			return nil, false, nil // The caller opens the path and returns the error.
		}
		if m := descriptorDir().FindStringSubmatch(dir); m != nil && m[1] == strconv.Itoa(os.Getpid()) {
			return duplicate(path, filepath.Base(name))
		}
		info, err := os.Lstat(name)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			return nil, false, nil
		}
		if name, err = nextLink(name); err != nil {
			return nil, false, nil
		}
	}
	return nil, false, nil
}

func duplicate(path, number string) (*os.File, bool, error) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return nil, false, nil // The caller opens the path and returns the error.
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, true, pathError(path, err)
	}
	return os.NewFile(uintptr(dup), path), true, nil
}
