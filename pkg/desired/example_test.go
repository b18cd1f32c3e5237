package desired_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func ExampleOf() {
	pkg, err := xpkg.Read([]byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: network}
`), xpkg.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := desired.Of(pkg, desired.Options{Package: "platform", Labels: map[string]string{"team": "a"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range objects.Desired() {
		fmt.Println(d.Ref.Kind, d.Ref.Name, d.Labels)
	}
	// Output: Composition network map[team:a]
}
