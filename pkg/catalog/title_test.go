package catalog

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestTitles(t *testing.T) {
	for _, c := range []struct {
		annotations map[string]string
		want        string
	}{
		{map[string]string{annotationTitle: "Boats"}, "Boats"},
		{map[string]string{xpkg.AnnotationTitle: "Ships"}, "Ships"}, // The title of a package of the first generation.
		{map[string]string{annotationTitle: "Boats", xpkg.AnnotationTitle: "Ships"}, "Boats"},
		{nil, ""},
	} {
		if got := Describe("registry.example.org/acme/boats", xpkg.Meta{Annotations: c.annotations}).Title; got != c.want {
			t.Errorf("%v: the title is %q, want %q", c.annotations, got, c.want)
		}
	}
}
