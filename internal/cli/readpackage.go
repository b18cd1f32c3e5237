package cli

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// readPackage reads the package of an artifact as an install would.
func readPackage(ctx context.Context, a oci.Artifact, m oci.Manifest, flags limitFlags) (*xpkg.Package, []byte, error) {
	stream, err := oci.PackageYAML(ctx, a, m, flags.imageLimits())
	if err != nil {
		return nil, nil, err
	}
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{Limits: flags.streamLimits()})
	return pkg, stream, err
}
