package corpus_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// Every valid package of the first generation is converted with `xpkg convert`. `xpkg build` accepts the files that it
// writes, and `xpkg lint` finds no error in the package.
func TestEveryConvertedPackageIsBuiltAndAccepted(t *testing.T) {
	if testing.Short() {
		t.Skip("converts 107 packages: skipped with -short")
	}
	root := filepath.Join(corpus.Dir(t), "legacy-v1")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains(firstRefused, e.Name()) {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			tree, dir := filepath.Join(root, e.Name()), t.TempDir()
			folder, built := filepath.Join(dir, "folder"), filepath.Join(dir, "built.xpkg")
			command(t, "convert", tree, "-o", folder)
			command(t, "build", "-f", filepath.Join(folder, "package"), "-o", built)
			command(t, "lint", built)
		})
	}
}

// command runs a command of xpkg, which must succeed.
func command(t *testing.T, args ...string) {
	t.Helper()
	var out, failed bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failed}
	if code := cli.Main(t.Context(), append([]string{"xpkg"}, args...), env); code != 0 {
		t.Fatalf("xpkg %q: exit code %d\n%s%s", args, code, out.String(), failed.String())
	}
}
