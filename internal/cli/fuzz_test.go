package cli

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Whatever a user writes is one place, and its text leads back to it.
func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"-", "oci:dir", "oci:", "a.xpkg", "./a:b", "ghcr.io/a/b:v1", "a/b@sha256:0", "C:\\a", "", "@", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePlace(s)
		if err != nil {
			return
		}
		again, err := parsePlace(p.String())
		if err != nil || again != p {
			t.Fatalf("%q is %+v, whose text is that of %+v (%v)", s, p, again, err)
		}
	})
}

// What a user asks for is a package under its one name.
func FuzzRootsOf(f *testing.F) {
	for _, s := range []string{"a.test/b/c:v1", "a.test/b/c@>=v1, <v2", "b/c@sha256:0", "A.test/b@*", "a.test/b:v1@>=v1", "@", ":", "a@", "x@v1@v2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if isPath(s) {
			return // It is looked up on the disk.
		}
		roots, err := rootsOf(s, "")
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
