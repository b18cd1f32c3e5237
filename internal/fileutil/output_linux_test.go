package fileutil_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// device creates a device node with the given minor number of /dev/mem's major number:
// 3 is null and 7 is full.
func device(t *testing.T, minor uint32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "device")
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
		prerequisite.Missing(t, "this user cannot create devices: %v", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		prerequisite.Missing(t, "the temporary directory does not allow devices: %v", err)
	}
	f.Close()
	return path
}

func output(t *testing.T, path string) error {
	t.Helper()
	return fileutil.WriteFile(t.Context(), path, fileutil.PublicMode, []byte("new"))
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func write(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// onlyEntries fails if the directory contains anything else, such as a temporary file.
func onlyEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the directory contains %q, want %q", got, want)
	}
}

func TestDevicesAreWrittenThrough(t *testing.T) {
	null := device(t, 3)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(null, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{null, link} {
		if err := output(t, path); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			t.Errorf("the device is now %v (%v)", info.Mode(), err)
		}
	}
	onlyEntries(t, filepath.Dir(null), "device")
}

func TestAFullDeviceIsAnError(t *testing.T) {
	full := device(t, 7)
	if err := output(t, full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	if info, err := os.Stat(full); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("the device is now %v (%v)", info.Mode(), err)
	}
}

func TestNamedPipesAreWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		raw, err := os.ReadFile(pipe)
		read <- string(raw) + errorText(err)
	}()
	if err := output(t, pipe); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "new" {
		t.Errorf("the reader got %q", got)
	}
	onlyEntries(t, dir, "pipe")
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestCancelEndsTheWaitForANamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("without a reader", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := fileutil.WriteFile(ctx, pipe, 0o600, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
	t.Run("with a reader that does not read", func(t *testing.T) {
		reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		ctx, cancel := context.WithCancel(t.Context())
		err = fileutil.WriteOutput(ctx, pipe, 0o600, func(w io.Writer) error {
			if _, err := w.Write([]byte("x")); err != nil {
				return err
			}
			cancel()
			_, err := w.Write(make([]byte, 1<<20))
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}

func TestANewFileHasTheModeOfTheUmask(t *testing.T) {
	for umask, want := range map[int]fs.FileMode{0o077: 0o600, 0o027: 0o640, 0o002: 0o664} {
		path := filepath.Join(t.TempDir(), "file")
		was := unix.Umask(umask)
		err := output(t, path)
		unix.Umask(was)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("umask %03o: mode %v, want %v (%v)", umask, info.Mode(), want, err)
		}
	}
}

func TestAnExistingFileKeepsModeAndOwner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, 0o640)
	uid := os.Getuid()
	if uid == 0 {
		uid = 1234
		if err := os.Chown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := output(t, path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); info.Mode().Perm() != 0o640 || owner != uid ||
		content(t, path) != "new" {
		t.Errorf("mode %v, owner %d, content %q", info.Mode(), owner, content(t, path))
	}
	onlyEntries(t, dir, "file")
	if err := fileutil.WriteFile(t.Context(), path, fileutil.PrivateMode, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file of secrets has mode %v (%v)", info.Mode(), err)
	}
}

func TestReadOnlyFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, 0o444)
	if err := output(t, path); !errors.Is(err, fileutil.ErrReadOnly) {
		t.Errorf("got %v, want %v", err, fileutil.ErrReadOnly)
	}
	if got := content(t, path); got != "old" {
		t.Errorf("the content is %q", got)
	}
	onlyEntries(t, dir, "file")
}

func TestDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := output(t, dir); !errors.Is(err, fileutil.ErrIsDirectory) {
		t.Errorf("got %v, want %v", err, fileutil.ErrIsDirectory)
	}
	if err := output(t, filepath.Join(dir, "no", "file")); !errors.Is(err, fs.ErrNotExist) ||
		strings.Contains(err.Error(), ".file") {
		t.Errorf("got %v", err)
	}
	onlyEntries(t, dir)
}

func TestSymlinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "a", "existing"), 0o600)
	links := map[string]string{
		"c/chain":    "first",
		"c/first":    filepath.Join(dir, "a", "existing"),
		"c/dangling": "../a/created",
		// The directory behind the link has another parent than the link.
		"c/dir":             "../a/b",
		"a/b/up":            "../above",
		"c/loop":            "loop",
		"c/through-the-dir": "dir/../beside",
	}
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"c/chain": "a/existing", "c/dangling": "a/created", "c/dir/up": "a/above", "c/through-the-dir": "a/beside",
	} {
		path := filepath.Join(dir, link)
		if err := output(t, path); err != nil {
			t.Error(err)
			continue
		}
		if got := content(t, filepath.Join(dir, target)); got != "new" {
			t.Errorf("%s: the target has the content %q", link, got)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is now %v (%v)", link, info.Mode(), err)
		}
	}
	if err := output(t, filepath.Join(dir, "c", "loop")); err == nil {
		t.Error("a loop of links was written to")
	}
}

func TestDescriptorsAreWrittenThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("first "); err != nil {
		t.Fatal(err)
	}
	if err := output(t, "/dev/fd/"+strconv.Itoa(int(f.Fd()))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(" last"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "first new last" {
		t.Errorf("the file behind the descriptor contains %q", got)
	}
}

func TestAFailedWriteChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, 0o600)
	for name, write := range map[string]func(func(io.Writer) error) error{
		"WriteOutput": func(f func(io.Writer) error) error { return fileutil.WriteOutput(t.Context(), path, 0o600, f) },
		"Replace":     func(f func(io.Writer) error) error { return fileutil.Replace(path, 0o600, f) },
	} {
		err := write(func(w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			return broken
		})
		if got := content(t, path); !errors.Is(err, broken) || got != "old" {
			t.Errorf("%s: content %q, error %v", name, got, err)
		}
	}
	onlyEntries(t, dir, "file")
}

func TestAFileThatAnotherUserPlantedIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		prerequisite.Missing(t, "needs root, to create files of a second user")
	}
	if raw, err := os.ReadFile("/proc/sys/fs/protected_regular"); err != nil || strings.TrimSpace(string(raw)) == "0" {
		t.Skip("the kernel does not protect such files here")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, 0o666)
	if err := errors.Join(os.Chown(path, 1234, 1234), os.Chmod(dir, 0o777|fs.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	if err := output(t, path); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want %v", err, fs.ErrPermission)
	}
}
