package dependencies

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

func TestSuggestionsForADependencyTree(t *testing.T) {
	f := lockfile.File{Packages: []lockfile.Package{{Repository: "registry.example.com/acme/network"}, {
		Repository: "registry.example.com/acme/base",
	}}}
	_, err := findLocked(f, "netwrk")
	if do := errcode.From(err).Do; !errors.Is(err, ErrNotLocked) ||
		do != "Did you mean registry.example.com/acme/network? "+ErrNotLocked.Fix {
		t.Errorf("%v, and what to do: %s", err, do)
	}
}

func TestAFolderIsNoLockFile(t *testing.T) {
	dir := t.TempDir()
	_, err := readLock(&terminal.Env{}, dir)
	if do := errcode.From(err).Do; !errors.Is(err, ErrLockNotFound) ||
		do != dir+" is a folder: name a lock file in it, such as "+filepath.Join(dir, "xpkg.lock")+"." {
		t.Errorf("%v, and what to do: %s", err, do)
	}
}
