package author

import (
	"errors"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestPackagesThatCannotBeReadAreNotPushed(t *testing.T) {
	ref := oci.MustParseReference("registry.example.org/acme/stack:v1")
	for name, c := range map[string]struct {
		in   image.Input
		code *errcode.Code
	}{
		"package": {image.Input{
			PackageYAML: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: a}\n"),
		}, nil},
		"no metadata": {image.Input{PackageYAML: []byte("apiVersion: v1\nkind: ConfigMap\n")}, &xpkg.ErrNoMeta},
		"no YAML": {
			image.Input{PackageYAML: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: a\n")},
			&xpkg.ErrNoMeta,
		},
		"wrong type": {image.Input{PackageYAML: []byte(
			"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: a}\nspec: {dependsOn: nothing}\n",
		)}, &xpkg.ErrMalformedMeta},
		"wrong kind": {
			image.Input{PackageYAML: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Bundle\nmetadata: {name: a}\n")},
			&xpkg.ErrUnsupportedMeta,
		},
		"first generation": {
			image.Input{Registry: []image.File{{Path: "app.yaml", Data: []byte("permissionScope: All\n")}}},
			&firstgen.ErrInvalidApp,
		},
	} {
		c.in.Platform = oci.Platform{OS: "linux", Architecture: "amd64"}
		built, err := image.Build(t.Context(), c.in)
		if err != nil {
			t.Fatal(err)
		}
		err = (&PushCmd{}).checkTag(&terminal.Env{Context: t.Context()}, built, ref)
		if c.code == nil && err != nil || c.code != nil && (!errors.Is(err, *c.code) || len(xpkg.Findings(err)) == 0) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
