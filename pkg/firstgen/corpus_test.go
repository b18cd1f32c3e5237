package firstgen_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// refused are the published packages that are not valid, each with the code of its first error.
var refused = map[string]errcode.Code{
	// The Deployment of install.yaml has the field spec.helm and no containers.
	"crossplane-contrib__provider-helm@v0.1.0-5f9173c0": firstgen.ErrInvalidInstall,
	// The readme of app.yaml has a line that is indented too little, which ends the block.
	"negz__provider-nop@2020-07-02-47745f2c": xpkg.ErrInvalidYAML,
	"negz__provider-nop@2020-07-02-f05544e1": xpkg.ErrInvalidYAML,
}

func TestEveryPublishedPackageIsAcceptedOrRefusedForAKnownReason(t *testing.T) {
	root := filepath.Join(corpus.Dir(t), "legacy-v1")
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) < 110 {
		t.Fatalf("the corpus has %d packages of the first generation, want 110", len(folders))
	}
	for _, d := range folders {
		pkg, err := read(t, os.DirFS(filepath.Join(root, d.Name())), firstgen.Options{})
		if code, bad := refused[d.Name()]; bad {
			if !errors.Is(err, code) {
				t.Errorf("%s: error %v, want code %s", d.Name(), err, code.Name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", d.Name(), err)
			continue
		}
		if len(pkg.Resources) == 0 {
			t.Errorf("%s: no resources", d.Name())
		}
		for _, r := range pkg.Resources {
			if r.CRD.Annotations[firstgen.AnnotationPackageTitle] != pkg.App.Title ||
				r.CRD.Labels[firstgen.LabelManagedBy] != firstgen.ManagedBy {
				t.Errorf("%s: CRD %s has labels %v", d.Name(), r.CRD.Name, r.CRD.Labels)
			}
		}
	}
}

// read reads the package in fsys.
func read(t testing.TB, fsys fs.FS, opts firstgen.Options) (*firstgen.Package, error) {
	t.Helper()
	l, err := firstgen.Find(fsys)
	if err != nil {
		return nil, err
	}
	sub, err := fs.Sub(fsys, l.Root)
	if err != nil {
		t.Fatal(err)
	}
	if l.CRDs != "" {
		if opts.CRDs, err = fs.Sub(fsys, l.CRDs); err != nil {
			t.Fatal(err)
		}
	}
	return firstgen.Read(sub, opts)
}
