package firstgen_test

import (
	"testing"
	"testing/fstest"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// FuzzRead checks that Read returns a package or a refusal with findings for every content of the files, and the same
// result for a second read.
func FuzzRead(f *testing.F) {
	f.Add([]byte("title: a\n"), []byte(deployment), []byte(betaCRD), []byte("id: Mytype\n"), []byte(svg))
	f.Add(
		[]byte("version: 1\ndependsOn: [{crd: a.b/c}]\n"), []byte{}, []byte(crdText("a.b", "K", "v1", "v2")),
		[]byte("a: &a [*a]\n"), []byte(png),
	)
	f.Fuzz(func(t *testing.T, app, install, crd, meta, icon []byte) {
		fsys := fstest.MapFS{}
		for name, data := range map[string][]byte{
			"app.yaml": app, "install.yaml": install, "behavior.yaml": install, "resources/crd.yaml": crd,
			"resources/x/y.crd.yaml":  crd,
			"resources/resource.yaml": meta, "resources/group.yaml": meta, "resources/ui-schema.yaml": meta, "icon.svg": icon,
			"resources/icon.png": icon,
		} {
			if len(data) > 0 {
				fsys[name] = &fstest.MapFile{Data: data}
			}
		}
		limits := xpkg.Limits{Nodes: 10_000, Depth: 50}
		pkg, err := firstgen.Read(fsys, firstgen.Options{Limits: limits})
		_, again := firstgen.Read(fsys, firstgen.Options{Limits: limits})
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("first %v, then %v", err, again)
		}
		if (pkg == nil) != (err != nil) {
			t.Fatalf("package %v with error %v", pkg, err)
		}
		if pkg != nil {
			pkg.Permissions()
			pkg.OwnedKinds()
			pkg.Documentation()
			if c, err := firstgen.Convert(pkg, firstgen.ConvertOptions{Bake: true}); err == nil {
				if _, err := xpkg.ReadMeta(c.Documents[0].YAML, xpkg.ReadOptions{}); err != nil {
					t.Fatalf("the converted metadata is refused: %v", err)
				}
				if _, err := c.RuntimeConfig("a"); err != nil {
					t.Fatal(err)
				}
			}
			if pkg.Install != nil {
				pkg.Install.Deployment(firstgen.InstallOptions{Image: "a/b:c", Source: "d"})
			}
		}
	})
}
