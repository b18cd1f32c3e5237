package check_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// Crossplane establishes the XRDs of real packages.
func TestXRDsOfRealPackagesAreValid(t *testing.T) {
	const configuration = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c}\n---\n"
	n := 0
	err := filepath.WalkDir(corpus.Dir(t), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(raw), "\n---") {
			if !strings.Contains(document, "\nkind: CompositeResourceDefinition") {
				continue
			}
			pkg, err := xpkg.Read([]byte(configuration+document), xpkg.ReadOptions{})
			if err != nil {
				continue // A template, or a file that no package contains.
			}
			n++
			for _, f := range check.Package(pkg, check.Options{CRDs: crdvalidation.ValidateCRD}) {
				if f.Code.Name == check.ErrInvalidXRD.Name {
					t.Errorf("%s: %s", path, f)
				}
			}
		}
		return nil
	})
	if err != nil || n < 100 {
		t.Errorf("%d XRDs, %v", n, err)
	}
}
