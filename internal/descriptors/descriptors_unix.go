//go:build unix && !linux

package descriptors

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// CloseOnExec marks every open descriptor from first up, so that the kernel closes it
// when this process, or a child of it, executes a program. The standard library marks
// the descriptors that it opens, but not the ones that the process was started with.
func CloseOnExec(first int) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC)
		// The descriptor with which the directory was read is closed by now.
		if err != nil && !errors.Is(err, syscall.EBADF) {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return nil
}
