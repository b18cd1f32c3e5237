package heapgrowth

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// releaseExecutable returns the pages of the executable to the operating system, which reads those that are used again
// from the file: a start uses much code and data that are never used again. The kernel does so only for a user that
// owns the executable or may write it, and fails with EINVAL before Linux 5.4.
func releaseExecutable() error {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for _, m := range mappingsOf(file, string(maps)) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_PAGEOUT); errno != 0 {
			return fmt.Errorf("return %d bytes: %w", m.to-m.from, errno)
		}
	}
	return nil
}
