package cli

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// readPackage reads the package of an artifact as an install would.
func readPackage(ctx context.Context, a oci.Artifact, m oci.Manifest, flags limitFlags) (*format.Package, []byte, error) {
	stream, err := oci.ReadPackageYAML(ctx, a, m, flags.imageLimits())
	if err != nil {
		return nil, nil, err
	}
	pkg, err := format.Read(stream, format.ReadOptions{Limits: flags.streamLimits()})
	return pkg, stream, err
}
