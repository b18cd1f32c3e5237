package descriptors

import (
	"errors"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CloseOnExec marks every open descriptor from first up, so that the kernel closes it
// when this process, or a child of it, executes a program. The standard library marks
// the descriptors that it opens, but not the ones that the process was started with.
func CloseOnExec(first int) error {
	const last = math.MaxUint32
	if unix.CloseRange(uint(first), last, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Linux before 5.11 does not support the flag, and a seccomp filter can deny the
	// call.
	return markEach(first)
}

// markEach marks the open descriptors one by one.
func markEach(first int) error {
	open, err := openDescriptors()
	if err != nil {
		return err
	}
	for _, fd := range open {
		if fd < first {
			continue
		}
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC)
		// The descriptor with which the directory was read is closed by now.
		if err != nil && !errors.Is(err, unix.EBADF) {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return nil
}

// openDescriptors returns the open descriptors. Without /proc it returns every number
// that a descriptor can have.
func openDescriptors() ([]int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return everyDescriptor()
	}
	var open []int
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		open = append(open, fd)
	}
	return open, nil
}

func everyDescriptor() ([]int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, os.NewSyscallError("getrlimit", err)
	}
	// A descriptor can be above a soft limit that was lowered later, and not above the
	// hard one.
	all := make([]int, min(limit.Max, 1<<20))
	for fd := range all {
		all[fd] = fd
	}
	return all, nil
}
