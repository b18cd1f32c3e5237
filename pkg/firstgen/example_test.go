package firstgen_test

import (
	"fmt"
	"testing/fstest"

	"github.com/xpkg-dev/xpkg/pkg/firstgen"
)

func ExampleRead() {
	fsys := fstest.MapFS{
		"app.yaml":                {Data: []byte("title: Databases\npackageType: Provider\npermissionScope: Cluster\n")},
		"resources/crd.yaml":      {Data: []byte(crdText("db.example.org", "MySQL", "v1"))},
		"resources/resource.yaml": {Data: []byte("title: MySQL instance\n")},
	}
	pkg, err := firstgen.Read(fsys, firstgen.Options{Tag: "v1.0.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pkg.App.Title, pkg.App.Version, pkg.App.Scope)
	for _, r := range pkg.Resources {
		fmt.Printf("%s: %s\n", r.CRD.Name, r.CRD.Annotations[firstgen.AnnotationResourceTitle])
	}
	// Output:
	// Databases v1.0.0 Cluster
	// mysqls.db.example.org: MySQL instance
}
