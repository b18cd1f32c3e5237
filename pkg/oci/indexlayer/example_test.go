package indexlayer_test

import (
	"context"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const stream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: network}
spec:
  compositeTypeRef: {apiVersion: acme.example.org/v1, kind: Network}
  mode: Pipeline
  pipeline: [{step: patch, functionRef: {name: function-patch}}]
`

// The index layer lists the objects of a package, so that a large package is read without its YAML.
func Example() {
	ctx := context.Background()
	layer, err := indexlayer.Build([]byte(stream), xpkg.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte(stream), Extra: []image.ExtraLayer{layer}})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := oci.FindManifest(ctx, img, oci.DefaultPlatform(), oci.DefaultLimits())
	if err != nil {
		fmt.Println(err)
		return
	}
	index, err := indexlayer.Read(ctx, img, *indexlayer.Find(m))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, entry := range index.Objects {
		fmt.Println(entry.GVK.Kind, entry.Name)
	}
	// Output: Composition network
}
