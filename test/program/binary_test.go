//go:build unix

package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/up/child"
)

// workshop is the folder of all that the tests of this binary make, with the
// program in it. The reaper removes it.
type workshop struct {
	// dir holds the program and the data directories.
	dir string
	// env is the environment of every command.
	env []string
}

func newWorkshop(t testing.TB) workshop {
	t.Helper()
	controlPlane := cluster.Program(t)
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + filepath.Join(dir, "home"),
		child.Variable + "=" + controlPlane,
	}
	return workshop{dir: dir, env: env}
}

func (w workshop) program() string { return filepath.Join(w.dir, "xpkg") }

// build builds the program once for each test binary, or takes the one that
// XPKG_BIN names, and puts kubectl beside it where that was built.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "xpkg-program-")
	if err != nil {
		return "", err
	}
	if err := startReaper(dir); err != nil {
		return "", err
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return "", err
	}
	if kubectl := filepath.Join(root, "bin", "kubectl"); isFile(kubectl) {
		if err := os.Symlink(kubectl, filepath.Join(dir, "kubectl")); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "xpkg")
	if named := os.Getenv("XPKG_BIN"); named != "" {
		if named, err = filepath.Abs(named); err != nil {
			return "", err
		}
		return dir, os.Symlink(named, program)
	}
	cmd := exec.Command("go", "build", "-o", program, "./cmd/xpkg")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
})

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
