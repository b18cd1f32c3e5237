package artifact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// A package that is refused is shown with the reasons, as far as it can be read.
func TestInspectShowsRefusedPackages(t *testing.T) {
	const meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: f}\n---\n"
	for name, c := range map[string]struct {
		stream string
		kinds  string
		code   string
	}{
		"XRD in a Function": {
			meta + "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\nmetadata: {name: a.b}\n", "",
			"ObjectNotAllowed",
		},
		"duplicate key": {
			meta +
				"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: a}\nspec: {group: b}\n",
			"CustomResourceDefinition", "DuplicateKey",
		},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(c.stream)})
			if err != nil {
				t.Fatal(err)
			}
			m, err := oci.FindManifest(t.Context(), img, oci.Platform{}, oci.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			view, err := (&InspectCmd{}).fromYAML(t.Context(), img, m, nil)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, o := range view.Objects {
				kinds = append(kinds, o.Kind)
			}
			if strings.Join(kinds, " ") != c.kinds || view.Name != "f" || len(view.Problems) != 1 ||
				view.Problems[0].Code.Name != c.code {
				t.Errorf("got %+v", view)
			}
			var out bytes.Buffer
			if writeFacts(&out, &inspection{Content: view}); !strings.Contains(out.String(), c.code) {
				t.Errorf("got %s", out.String())
			}
		})
	}
}
