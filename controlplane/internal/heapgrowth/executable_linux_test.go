package heapgrowth

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Most pages of the executable are returned, and the process continues.
func TestExecutableIsReleased(t *testing.T) {
	before := fileKilobytes(t)
	err := releaseExecutable()
	if errors.Is(err, unix.EINVAL) {
		t.Skipf("the kernel returns no pages on request: %v", err)
	}
	if after := fileKilobytes(t); err != nil || after > before/2 {
		t.Errorf("%d kB of files were in memory before, and %d after (%v)", before, after, err)
	}
}

// fileKilobytes returns the size of the pages of files that the process has in memory.
func fileKilobytes(t *testing.T) (n int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
