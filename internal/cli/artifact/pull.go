package artifact

import (
	"path"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// PullCmd implements `xpkg pull`.
type PullCmd struct {
	Ref         string `arg:"" help:"Package to pull, for example xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0."`
	PackageFile string `short:"o" placeholder:"FILE" help:"File to write, or - for standard output. Default is REPOSITORY-DIGEST.xpkg in this folder."`
	location.TransferFlags
}

// Run copies a package from a registry to an .xpkg file.
func (c *PullCmd) Run(env *terminal.Env) error {
	ref, err := flags.ParseReference(c.Ref)
	if err != nil {
		return err
	}
	to := location.Location{Kind: location.File, Path: c.PackageFile}
	if c.PackageFile == "" {
		if ref, err = c.resolve(env, ref); err != nil {
			return err
		}
		to.Path = oci.FriendlyID(path.Base(ref.Repository), ref.Digest.Hex()) + ".xpkg"
	}
	_, err = copyPackage(env, c.TransferFlags, location.Location{Kind: location.Registry, Ref: ref}, to)
	return err
}

// resolve returns the reference with its digest, which determines the default name of the
// file.
func (c *PullCmd) resolve(env *terminal.Env, ref oci.Reference) (oci.Reference, error) {
	remote, err := c.Remote(env.Context, c.ImageLimits(), nil, ref.Registry)
	if err != nil {
		return ref, err
	}
	defer remote.Close()
	d, err := remote.Resolve(env.Context, ref)
	return ref.WithDigest(d.Digest), err
}
