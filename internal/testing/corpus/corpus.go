// Package corpus finds the corpus of real packages for tests. The corpus is not part of the
// repository: it is in ../shared/corpus beside it, with a script that unpacks it.
package corpus

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// Dir returns the folder of the unpacked corpus. The environment variable XPKG_CORPUS names it.
// Without the variable, the script beside the repository unpacks the corpus once. If there is no
// corpus, Dir calls [prerequisite.Missing].
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := find()
	if dir == "" {
		prerequisite.Missing(
			t, "corpus of real packages not found (%v): set XPKG_CORPUS to an unpacked corpus, or put it in ../shared/corpus",
			err,
		)
	}
	return dir
}

var find = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("XPKG_CORPUS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "providers")); err == nil {
			return dir, nil
		}
	}
	script, err := unpackScript()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(script).Output()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
})

// unpackScript returns the path of shared/corpus/unpack in the nearest folder above the working directory, which is the
// folder of the tested package.
func unpackScript() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(folder, "shared", "corpus", "unpack")
		_, err := os.Stat(script)
		if err == nil || folder == filepath.Dir(folder) {
			return script, err
		}
		folder = filepath.Dir(folder)
	}
}
