package corpus_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// Every valid package of the first generation is converted with `xpkg convert`. `xpkg build` accepts the files that it
// writes, and `xpkg lint` finds no error in the package.
func TestEveryConvertedPackageIsBuiltAndAccepted(t *testing.T) {
	lane.Full(t, "test/corpus.TestInstallCorpus", "pkg/firstgen.TestPublishedPackagesNeedConsentForAKnownReason")
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
			command.Run(t, "convert", tree, "-o", folder)
			command.Run(t, "build", "-f", filepath.Join(folder, "package"), "-o", built)
			command.Run(t, "lint", built)
		})
	}
}
