package image_test

import (
	"context"
	"fmt"
	"log"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

const packageYAML = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: hello
`

// Build a package image in memory and read package.yaml back.
func ExampleBuild() {
	ctx := context.Background()
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte(packageYAML)})
	if err != nil {
		log.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil {
		log.Fatal(err)
	}
	data, err := oci.PackageYAML(ctx, img, m, oci.DefaultLimits())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(img.Platform(), len(m.Layers), m.Layers[0].Annotations[oci.AnnotationKey])
	fmt.Print(string(data))
	// Output:
	// linux/amd64 1 base
	// apiVersion: meta.pkg.crossplane.io/v1
	// kind: Configuration
	// metadata:
	//   name: hello
}

// Join the images of two platforms. The order of the images does not change the digest.
func ExampleNewIndex() {
	var images []*image.Image
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := image.Build(context.Background(), image.Input{
			PackageYAML: []byte(packageYAML),
			Platform:    oci.Platform{OS: "linux", Architecture: arch},
		})
		if err != nil {
			log.Fatal(err)
		}
		images = append(images, img)
	}
	index, err := image.NewIndex(images...)
	if err != nil {
		log.Fatal(err)
	}
	reversed, err := image.NewIndex(images[1], images[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(index.Root().MediaType, index.Digest() == reversed.Digest())
	// Output: application/vnd.oci.image.index.v1+json true
}
