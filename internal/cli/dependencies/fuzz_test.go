package dependencies

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A root of a request is a package under its canonical name.
func FuzzRootsOf(f *testing.F) {
	for _, s := range []string{
		"a.test/b/c:v1", "a.test/b/c@>=v1, <v2", "b/c@sha256:0", "A.test/b@*", "a.test/b:v1@>=v1", "@", ":", "a@", "x@v1@v2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if location.IsPath(s) {
			return // It is looked up on the disk.
		}
		roots, err := rootsOf(nil, s, "")
		if err != nil {
			return
		}
		if len(roots) != 1 || roots[0].Constraint == "" {
			t.Fatalf("%q is %+v", s, roots)
		}
		ref, err := oci.ParseReference(roots[0].Package, oci.ParseOptions{AllowUntagged: true})
		if err != nil || ref.Name() != roots[0].Package {
			t.Fatalf("%q is %+v, %v", s, roots, err)
		}
	})
}
