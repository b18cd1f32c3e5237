package filetree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nest creates folders within each other, deeper than a path can be long.
func nest(t *testing.T, dir, name string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(at, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err := errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
}

// A tree that is deeper than the limit of open files is removed.
//
// hardening: H13
func TestRemoveDeepTree(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	nest(t, dir, "d", 5_000)
	nest(t, dir, strings.Repeat("x", 250), 200)
	// Names that a moved folder would get.
	write(t, filepath.Join(dir, ".removed-1"))
	nest(t, dir, ".removed-2", 40)
	few := unix.Rlimit{Cur: min(limit.Cur, 200), Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err := Remove(dir)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err != nil || Exists(dir) {
		t.Errorf("the tree is not removed: %.500v", err)
	}
}

// Folders without permissions, links and files without permissions are removed, and links are not followed.
func TestRemoveTreeWithoutPermissions(t *testing.T) {
	top := t.TempDir()
	outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "tree")
	for _, folder := range []string{outside, filepath.Join(dir, "closed", "inner")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "file"))
	}
	for _, link := range []string{"link", "closed/link"} {
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"closed/inner", "closed"} {
		if err := os.Chmod(filepath.Join(dir, folder), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(dir); err != nil || Exists(dir) {
		t.Errorf("the tree is not removed: %v", err)
	}
	info, err := os.Stat(outside)
	if err != nil || info.Mode().Perm() != 0o700 || !Exists(filepath.Join(outside, "file")) {
		t.Errorf("a folder outside of the tree has changed: %v %v", info, err)
	}
}

func TestRemoveOtherThanFolders(t *testing.T) {
	top := t.TempDir()
	file, link := filepath.Join(top, "file"), filepath.Join(top, "link")
	write(t, file)
	if err := os.Symlink(top, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, file, filepath.Join(top, "missing"), filepath.Join(top, "missing", "too")} {
		if err := Remove(path); err != nil || Exists(path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Remove(string([]byte{'a', 0})); err == nil {
		t.Error("a name that is not valid is accepted")
	}
}
