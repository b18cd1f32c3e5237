package location

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
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
		return "", archive.ErrArchiveNotFound.New(nil, "this folder contains no .xpkg file").
			WithDo("Build one with `xpkg build`, or name one with -f.")
	case 1:
		return found[0], nil
	}
	return "", terminal.ErrUsage.New(
		nil, "this folder contains %d .xpkg files: %s", len(found), strings.Join(found, ", "),
	).WithDo("Choose one with -f.")
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
	return readStream(env.Context, a, m, limits)
}

func readStream(ctx context.Context, a oci.Artifact, m oci.Manifest, limits flags.LimitFlags) ([]byte, error) {
	return packagestream.Read(ctx, a, m, packagestream.Options{
		Limits: limits.ImageLimits(), Format: limits.StreamLimits(),
	})
}

// ReadFile reads the package in a file or an OCI layout. It ends at once when the command is interrupted.
func ReadFile(env *terminal.Env, path string, limits flags.LimitFlags) (*xpkg.Package, error) {
	stream, err := ReadStream(env, path, limits)
	if err != nil {
		return nil, err
	}
	return parse(env.Context, stream, limits)
}

// ReadPackage reads the package of an artifact with the policy of an install. It ends at once when the command is
// interrupted.
func ReadPackage(
	ctx context.Context, a oci.Artifact, m oci.Manifest, flags flags.LimitFlags,
) (*xpkg.Package, []byte, error) {
	text, err := readStream(ctx, a, m, flags)
	if err != nil {
		return nil, nil, err
	}
	pkg, err := parse(ctx, text, flags)
	return pkg, text, err
}

func parse(ctx context.Context, stream []byte, limits flags.LimitFlags) (*xpkg.Package, error) {
	return fileutil.Await(ctx, func() (*xpkg.Package, error) {
		return xpkg.Read(stream, xpkg.ReadOptions{Limits: limits.StreamLimits()})
	})
}
