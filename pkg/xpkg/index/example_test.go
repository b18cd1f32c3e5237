package index_test

import (
	"bytes"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// Store the index of a package and its objects, and read the package again without its YAML.
func Example() {
	pkg, err := xpkg.Read([]byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: network, labels: {team: a}}
`), xpkg.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := index.New(pkg)
	if err != nil {
		fmt.Println(err)
		return
	}
	encoded := index.Encode(x)
	objects, err := index.Blob(pkg)
	if err != nil {
		fmt.Println(err)
		return
	}

	again, err := index.Decode(encoded)
	if err != nil {
		fmt.Println(err)
		return
	}
	warm, err := again.Package(bytes.NewReader(bytes.Join(objects, nil)), xpkg.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range warm.Objects {
		s, err := o.Summary()
		fmt.Println(o.GVK.Kind, o.Name, s.Labels, err)
	}
	// Output: Composition network map[team:a] <nil>
}
