//go:build unix

package up_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// directory creates a directory with exactly this mode.
func directory(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, to, path string) string {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func owned(t *testing.T, path string) string {
	t.Helper()
	return ownedBy(t, 1234, path)
}

func ownedBy(t *testing.T, user int, path string) string {
	t.Helper()
	if os.Getuid() != 0 {
		prerequisite.Missing(t, "only root can create files of another user")
	}
	if err := os.Lchown(path, user, user); err != nil {
		t.Fatal(err)
	}
	return path
}

// nobody is an ordinary user, unless the user does not exist in the user namespace.
const nobody = 65534

// A data directory that another user can change or replace is refused, and nothing is
// written to it.
//
// hardening: K4
func TestUnsafeDataDirIsRefused(t *testing.T) {
	withoutControlPlane(t)
	for name, prepare := range map[string]func(t *testing.T, dir string) (dataDir string){
		"world-writable": func(t *testing.T, d string) string { return directory(t, d+"/data", 0o777) },
		"world-writable and sticky": func(
			t *testing.T, d string,
		) string {
			return directory(t, d+"/data", 0o777|fs.ModeSticky)
		},
		"group-writable":  func(t *testing.T, d string) string { return directory(t, d+"/data", 0o770) },
		"of another user": func(t *testing.T, d string) string { return owned(t, directory(t, d+"/data", 0o755)) },
		"a link to one": func(t *testing.T, d string) string {
			return link(t, directory(t, d+"/other", 0o777), d+"/data")
		},
		"in a world-writable directory": func(t *testing.T, d string) string {
			return filepath.Join(directory(t, d+"/open", 0o777), "data")
		},
		"below a world-writable directory": func(t *testing.T, d string) string {
			inner := directory(t, d+"/open/inner", 0o700)
			directory(t, d+"/open", 0o777)
			return filepath.Join(inner, "data")
		},
		"a link into a world-writable directory": func(t *testing.T, d string) string {
			inner := directory(t, d+"/open/inner", 0o700)
			directory(t, d+"/open", 0o777)
			return link(t, inner, d+"/data")
		},
		"in a directory of another user": func(t *testing.T, d string) string {
			return filepath.Join(owned(t, directory(t, d+"/theirs", 0o755)), "data")
		},
		"behind a link of another user": func(t *testing.T, d string) string {
			return owned(t, link(t, directory(t, d+"/other", 0o700), d+"/data"))
		},
		"below a directory of the user nobody": func(t *testing.T, d string) string {
			inner := directory(t, d+"/theirs/inner", 0o700)
			ownedBy(t, nobody, d+"/theirs")
			return filepath.Join(inner, "data")
		},
		"behind a link of the user nobody in a sticky directory": func(t *testing.T, d string) string {
			sticky := directory(t, d+"/tmp", 0o777|fs.ModeSticky)
			return filepath.Join(ownedBy(t, nobody, link(t, directory(t, d+"/other", 0o700), sticky+"/link")), "data")
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := prepare(t, root)
			_, detached := up.Detach(t.Context(), dir, noTests)
			_, status := up.Status(dir)
			for command, err := range map[string]error{
				"run":    up.Run(t.Context(), up.Options{Dir: dir}),
				"detach": detached,
				"status": status,
			} {
				if !errors.Is(err, up.ErrDataDirUnsafe) {
					t.Errorf("%s: got %v, want %s", command, err, up.ErrDataDirUnsafe.Name)
				}
			}
			if entries, err := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("the directory contains %v (%v)", entries, err)
			}
		})
	}
}

// Directories that only their owner can write to are accepted, also in /tmp.
func TestPrivateDataDirIsAccepted(t *testing.T) {
	root := t.TempDir()
	sticky := directory(t, filepath.Join(root, "tmp"), 0o777|fs.ModeSticky)
	for _, dir := range []string{
		filepath.Join(sticky, "missing", "data"),
		directory(t, filepath.Join(sticky, "data"), 0o700),
		directory(t, filepath.Join(root, "readable"), 0o755),
		link(t, filepath.Join(sticky, "data"), filepath.Join(root, "link")),
	} {
		if _, err := up.Status(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// The recorded process id may belong to another process. It is never signaled: the kernel
// reports the process that holds the lock.
func TestStopDoesNotSignalTheRecordedProcess(t *testing.T) {
	bystander := exec.Command("sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, "up.lock"))
	if ok, err := lock.TryLock(); !ok {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "up.pid"), strconv.Itoa(bystander.Process.Pid))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := up.Stop(ctx, dir); !errors.Is(err, up.ErrNotStopped) {
		t.Errorf("got %v, want %s", err, up.ErrNotStopped.Name)
	}
	_ = lock.Unlock()
	_ = bystander.Process.Kill()
	_ = bystander.Wait()
	if status, ok := bystander.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the other process ended with %v, want the signal of this test", bystander.ProcessState)
	}
}
