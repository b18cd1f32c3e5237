package unpack_test

import (
	"context"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// Find reads the manifest and the configuration of an image, and no layers.
func ExampleFind() {
	ctx := context.Background()
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte("kind: Provider\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := unpack.Find(ctx, img, oci.DefaultPlatform(), oci.DefaultLimits(), unpack.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Platform, len(found.Layers))
	// Output: linux/amd64 1
}
