// Package examples_test shows that the examples are good packages.
package examples_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// TestExamples reads every example as `xpkg build` does, and wants nothing to be
// found in it.
func TestExamples(t *testing.T) {
	cases := []struct {
		folder    string
		kind      xpkg.Kind
		objects   int
		dependsOn []string
	}{
		{"provider-hello/package", xpkg.Provider, 2, nil},
		{"function-greet/package", xpkg.Function, 1, nil},
		{"configuration-hello", xpkg.Configuration, 2, []string{
			"Provider 127.0.0.1:15000/examples/provider-hello >=v0.1.0",
			"Function 127.0.0.1:15000/examples/function-greet >=v0.1.0",
		}},
	}
	for _, c := range cases {
		t.Run(c.folder, func(t *testing.T) {
			folder, err := xpkg.ReadFolder(os.DirFS(c.folder), xpkg.FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pkg, err := folder.Package(xpkg.ReadOptions{Expect: c.kind, Policy: xpkg.PolicyBuild()})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range pkg.Findings {
				t.Error(f)
			}
			if len(pkg.Objects) != c.objects {
				t.Errorf("there are %d objects, want %d", len(pkg.Objects), c.objects)
			}
			var deps []string
			for _, d := range pkg.Meta.DependsOn {
				deps = append(deps, string(d.Kind)+" "+d.Package+" "+d.Constraint)
			}
			if diff := cmp.Diff(c.dependsOn, deps); diff != "" {
				t.Error(diff)
			}
		})
	}
}
