package datadir

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// A new data directory on a full device is not left behind: lock files need no space, so they could be created.
func TestNewDirectoryOnAFullDeviceIsRemoved(t *testing.T) {
	device := t.TempDir()
	err := unix.Mount("tmpfs", device, "tmpfs", 0, "size=64k")
	if errors.Is(err, unix.EPERM) {
		prerequisite.Missing(t, "this process must not mount a file system: run the test as root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(device, 0); err != nil {
			t.Error(err)
		}
	})
	empty, missing := filepath.Join(device, "empty"), filepath.Join(device, "missing")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(device, "rest"), bytes.Repeat([]byte("x"), 1<<20), 0o600,
	); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the device is not full: %v", err)
	}
	for _, dir := range []string{empty, missing} {
		if _, err := Open(dir, time.Now()); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("the directory that existed has %v (%v)", entries, err)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("the directory that was missing: %v", err)
	}
}
