package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

// Write a package to a .xpkg file and open it.
func ExampleOpen() {
	if err := inTempDir(writeAndOpen); err != nil {
		fmt.Println(err)
	}
	// Output:
	// same digest: true
	// kind: Configuration
}

func writeAndOpen(ctx context.Context, dir string) error {
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte("kind: Configuration\n")})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "hello.xpkg")
	if _, err := oci.Copy(ctx, archive.ToFile(file, archive.WriteOptions{}, oci.DefaultLimits()), img); err != nil {
		return err
	}

	a, err := archive.Open(ctx, file, oci.DefaultLimits())
	if err != nil {
		return err
	}
	defer a.Close()
	m, err := oci.FindManifest(ctx, a, oci.DefaultPlatform(), oci.DefaultLimits())
	if err != nil {
		return err
	}
	data, err := oci.PackageYAML(ctx, a, m, oci.DefaultLimits())
	if err != nil {
		return err
	}
	fmt.Println("same digest:", a.Digest() == img.Digest())
	fmt.Print(string(data))
	return nil
}

// Copy a package to an OCI layout. The copy keeps the digest.
func ExampleToLayout() {
	if err := inTempDir(copyToLayout); err != nil {
		fmt.Println(err)
	}
	// Output: same digest: true
}

func copyToLayout(ctx context.Context, dir string) error {
	img, err := image.Build(ctx, image.Input{PackageYAML: []byte("kind: Configuration\n")})
	if err != nil {
		return err
	}
	layout := filepath.Join(dir, "layout")
	if _, err := oci.Copy(ctx, archive.ToLayout(layout, "v1.0.0", oci.DefaultLimits()), img); err != nil {
		return err
	}
	a, err := archive.Open(ctx, layout, oci.DefaultLimits())
	if err != nil {
		return err
	}
	defer a.Close()
	fmt.Println("same digest:", a.Digest() == img.Digest())
	return nil
}

func inTempDir(do func(ctx context.Context, dir string) error) error {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return do(context.Background(), dir)
}
