package xpkg_test

import (
	"fmt"
	"testing/fstest"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const exampleStream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
spec:
  dependsOn:
  - {provider: xpkg.example.org/acme/network, version: ">=v1.0.0"}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: network}
`

func ExampleRead() {
	pkg, err := xpkg.Read([]byte(exampleStream), xpkg.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pkg.Meta.Kind, pkg.Meta.Name)
	for _, d := range pkg.Meta.DependsOn {
		fmt.Println("requires", d.Package, d.Constraint)
	}
	for _, o := range pkg.Objects {
		fmt.Println(o.GVK.Kind, o.Name)
	}
	// Output:
	// Configuration platform
	// requires xpkg.example.org/acme/network >=v1.0.0
	// Composition network
}

func ExampleReadFolder() {
	folder, err := xpkg.ReadFolder(fstest.MapFS{
		"crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\n")},
		"crds/secret.yml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")},
	}, xpkg.FolderOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = folder.Package(xpkg.ReadOptions{Policy: xpkg.PolicyBuild()})
	for _, f := range xpkg.Findings(err) {
		fmt.Println(f.Place(), f.Code.Name)
	}
	// Output: crds/secret.yml:1 UnknownKind
}
