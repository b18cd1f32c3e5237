package check

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// FuzzStream proves that no stream makes the checks panic.
func FuzzStream(f *testing.F) {
	const meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\n---\n"
	f.Add([]byte(meta +
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: o}\nspec: {versions: [{schema: {properties: {a: {properties: []}}}}]}\n"))
	f.Add([]byte(meta +
		"apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: o, annotations: [a]}\nspec: {conversion: 1}\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		limits := xpkg.Limits{StreamBytes: 1 << 16, Depth: 50, Nodes: 1000, AliasNodes: 1000}
		Stream(stream, xpkg.ReadOptions{Limits: limits}, Options{Limits: limits})
	})
}
