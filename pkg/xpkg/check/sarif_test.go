package check

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

var update = flag.Bool("update", false, "write the golden files")

func TestSARIF(t *testing.T) {
	f, err := xpkg.ReadFolder(fstest.MapFS{
		"crossplane.yaml": {
			Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\nspec: {dependOn: []}\n"),
		},
		"a b/secret#.yaml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")},
	}, xpkg.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	findings := Folder(f, xpkg.ReadOptions{Policy: xpkg.PolicyBuild()}, Options{Policy: xpkg.PolicyBuild()})
	got, err := SARIF(append(findings, xpkg.Finding{Code: xpkg.ErrNoMeta, Severity: xpkg.Error, Message: "no place"}))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "findings.sarif")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Error(diff)
	}
	if empty, err := SARIF(nil); err != nil || len(empty) == 0 {
		t.Errorf("no findings: %s, %v", empty, err)
	}
}
