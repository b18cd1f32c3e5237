package check_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

func ExampleStream() {
	stream := []byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: network}
spec:
  compositeTypeRef: {apiVersion: example.org/v1}
  mode: Pipelines
`)
	for _, f := range check.Stream(stream, xpkg.ReadOptions{}, check.Options{}) {
		fmt.Println(f)
	}
	// Output:
	// package.yaml:9: error InvalidPackageObject: document 2, Composition, "network": spec.compositeTypeRef.kind: is required
	// package.yaml:10: error InvalidPackageObject: document 2, Composition, "network": spec.mode: "Pipelines" is none of Resources, Pipeline
}
