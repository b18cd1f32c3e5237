package location

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// OnePackageFile returns the only .xpkg file of a folder.
func OnePackageFile(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.xpkg"))
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", archive.ErrArchiveNotFound.New(nil, "this folder contains no .xpkg file").WithDo("Build one with `xpkg build`, or name one with -f.")
	case 1:
		return found[0], nil
	}
	return "", terminal.ErrUsage.New(nil, "this folder contains %d .xpkg files: %s", len(found), strings.Join(found, ", ")).WithDo("Choose one with -f.")
}

// ReadStream reads the stream of objects of a package in a file or an OCI layout.
func ReadStream(env *terminal.Env, path string, limits flags.LimitFlags) (_ []byte, err error) {
	at, err := Parse(path)
	if err != nil {
		return nil, err
	}
	a, err := OpenPath(env, at, limits.ArchiveLimit(), limits.ImageLimits())
	if err != nil {
		return nil, err
	}
	defer terminal.Close(&err, a)
	m, err := oci.FindManifest(env.Context, a, oci.Platform{}, limits.ImageLimits())
	if err != nil {
		return nil, err
	}
	return packagestream.Read(env.Context, a, m, packagestream.Options{Limits: limits.ImageLimits(), Format: limits.StreamLimits()})
}

// ReadPackage reads the package of an artifact with the policy of an install. It ends at once when the command is interrupted.
func ReadPackage(ctx context.Context, a oci.Artifact, m oci.Manifest, flags flags.LimitFlags) (*xpkg.Package, []byte, error) {
	text, err := packagestream.Read(ctx, a, m, packagestream.Options{Limits: flags.ImageLimits(), Format: flags.StreamLimits()})
	if err != nil {
		return nil, nil, err
	}
	pkg, err := terminal.Interruptible(ctx, func() (*xpkg.Package, error) {
		return xpkg.Read(text, xpkg.ReadOptions{Limits: flags.StreamLimits()})
	})
	return pkg, text, err
}
