package packagediff_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/packagediff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const before = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
spec:
  dependsOn:
  - {provider: xpkg.example.org/acme/network, version: ">=v1.0.0"}
`

const after = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
spec:
  dependsOn:
  - {provider: xpkg.example.org/acme/network, version: ">=v2.0.0"}
`

func ExampleCompare() {
	from, err := xpkg.Read([]byte(before), xpkg.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	to, err := xpkg.Read([]byte(after), xpkg.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	diff, err := packagediff.Compare(from, to)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range diff.Metadata {
		fmt.Printf("%s: %s → %s\n", change.Subject, change.From, change.To)
	}
	// Output: dependency xpkg.example.org/acme/network: >=v1.0.0 → >=v2.0.0
}
