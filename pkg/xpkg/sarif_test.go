package xpkg

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestSARIF(t *testing.T) {
	f, err := ReadFolder(files(map[string]string{
		"crossplane.yaml":  meta(Provider) + "spec: {dependOn: []}\n",
		"a b/secret#.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
	}), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	findings := f.Lint(ReadOptions{Policy: PolicyBuild()}, CheckOptions{Policy: PolicyBuild()})
	got, err := SARIF(append(findings, Finding{Code: ErrNoMeta, Severity: Error, Message: "no place"}))
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
