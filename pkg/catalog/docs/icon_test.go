package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// The first valid icon of the annotations is the icon of the package.
func TestIconComesFromTheAnnotations(t *testing.T) {
	const png = "data:image/png;base64,iVBORw=="
	want := &Icon{"image/png", []byte("\x89PNG")}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        *Icon
	}{
		"none":                    {nil, nil},
		"of the first generation": {map[string]string{xpkg.AnnotationIcon: png}, want},
		"of the field":            {map[string]string{"meta.crossplane.io/iconURI": png}, want},
		"not valid, then valid": {
			map[string]string{xpkg.AnnotationIcon: "data:image/png;base64,?", "meta.crossplane.io/iconURI": png}, want,
		},
		"not an image":                {map[string]string{xpkg.AnnotationIcon: "data:text/html;base64,iVBORw=="}, nil},
		"the address of another site": {map[string]string{"meta.crossplane.io/iconURI": "https://example.org/icon.png"}, nil},
	} {
		if diff := cmp.Diff(c.want, icon(c.annotations)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
