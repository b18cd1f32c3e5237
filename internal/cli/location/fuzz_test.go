package location

import (
	"testing"
)

// Every text is one location, and the text of the location parses to the same location.
func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{
		"-", "oci:dir", "oci:", "a.xpkg", "./a:b", "ghcr.io/a/b:v1", "a/b@sha256:0", "C:\\a", "", "@", ":",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again != p {
			t.Fatalf("%q is %+v, whose text is that of %+v (%v)", s, p, again, err)
		}
	})
}
