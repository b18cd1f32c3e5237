package fileutil_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

func TestDirectoryAdviceNamesTheCause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(file, "a", "b")
	for name, tc := range map[string]struct {
		err         error
		dir, option string
		want        string
	}{
		"file": {os.MkdirAll(file, 0o700), file, "--cache-dir", file +
			" is a file and not a directory: move it, or name another directory with --cache-dir."},
		"parent": {os.MkdirAll(below, 0o700), below, "", file +
			" is a file and not a directory: move it, or name another directory."},
		"read-only": {
			&fs.PathError{Err: syscall.EROFS}, "/a", "--to",
			"/a is on a read-only file system: name another directory with --to.",
		},
		"no space": {
			&fs.PathError{Err: syscall.ENOSPC}, "/a", "", "Free space on the device of /a, or name another directory.",
		},
		"permissions": {&fs.PathError{Err: syscall.EACCES}, "/a", "", "This user may not write to /a: "},
		"other":       {errors.New("other"), "/a", "", ""},
	} {
		got := fileutil.DirectoryAdvice(tc.err, tc.dir, tc.option)
		if got != tc.want && (tc.want == "" || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
