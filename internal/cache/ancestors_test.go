//go:build unix

package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// makeFolder creates a folder with exactly this mode.
func makeFolder(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func makeLink(t *testing.T, to, path string) string {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// giveAway makes another user the owner of a file.
func giveAway(t *testing.T, path string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		prerequisite.Missing(t, "only root can create files of another user")
	}
	if err := os.Lchown(path, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	return path
}

// A cache that another user can replace is refused, and nothing is written to it. In a pod,
// volumes are writable by all users.
//
// hardening: K4
func TestReplaceableCacheIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) string{
		"world-writable": func(t *testing.T, d string) string { return makeFolder(t, d+"/cache", 0o777) },
		"in a world-writable folder": func(t *testing.T, d string) string {
			return filepath.Join(makeFolder(t, d+"/open", 0o777), "cache")
		},
		"below a world-writable folder": func(t *testing.T, d string) string {
			inner := makeFolder(t, d+"/open/inner", 0o700)
			makeFolder(t, d+"/open", 0o777)
			return filepath.Join(inner, "cache")
		},
		"a link into a world-writable folder": func(t *testing.T, d string) string {
			inner := makeFolder(t, d+"/open/inner", 0o700)
			makeFolder(t, d+"/open", 0o777)
			return makeLink(t, inner, d+"/cache")
		},
		"of another user": func(t *testing.T, d string) string { return giveAway(t, makeFolder(t, d+"/cache", 0o755)) },
		"in a folder of another user": func(t *testing.T, d string) string {
			return filepath.Join(giveAway(t, makeFolder(t, d+"/theirs", 0o755)), "cache")
		},
		"behind a link of another user": func(t *testing.T, d string) string {
			return giveAway(t, makeLink(t, makeFolder(t, d+"/other", 0o700), d+"/cache"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(podVariable, "")
			dir := prepare(t, t.TempDir())
			if c, err := Open(dir, Options{}); !errors.Is(err, store.ErrUnsafeStore) {
				t.Errorf("got %v", err)
				if err == nil {
					_ = c.Close()
				}
			}
			if entries, err := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("the folder contains %v (%v)", entries, err)
			}
			t.Setenv(podVariable, "10.0.0.1")
			c, err := Open(dir, Options{})
			if err != nil {
				t.Fatalf("in a pod: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Setenv(podVariable, "")
	sticky := makeFolder(t, filepath.Join(t.TempDir(), "tmp"), 0o777|fs.ModeSticky)
	c, err := Open(filepath.Join(sticky, "missing", "cache"), Options{})
	if err != nil {
		t.Fatalf("in a sticky folder: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
