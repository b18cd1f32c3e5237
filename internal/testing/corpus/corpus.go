// Package corpus finds the corpus of real packages for tests. The corpus is not part of the
// repository: it is in ../shared/corpus beside it, with a script that unpacks it.
package corpus

import (
	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Dir returns the folder of the unpacked corpus. The environment variable XPKG_CORPUS names it.
// Without the variable, the script beside the repository unpacks the corpus once. If there is no
// corpus, Dir calls [prerequisite.Missing].
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := find()
	if dir == "" {
		prerequisite.Missing(t, "corpus of real packages not found (%v): set XPKG_CORPUS to an unpacked corpus, or put it in ../shared/corpus", err)
	}
	return dir
}

var find = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("XPKG_CORPUS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "providers")); err == nil {
			return dir, nil
		}
	}
	script := filepath.Join(repository(), "..", "shared", "corpus", "unpack")
	if _, err := os.Stat(script); err != nil {
		return "", err
	}
	out, err := exec.Command(script).Output()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
})

// repository returns the root of the repository, from the path of this file.
func repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
