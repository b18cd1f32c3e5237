package cli

import (
	"path"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

type pullCmd struct {
	Ref         string `arg:"" help:"Package to pull, for example xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0."`
	PackageFile string `short:"o" placeholder:"FILE" help:"File to write, or - for standard output. Default is REPOSITORY-DIGEST.xpkg in this folder."`
	transferFlags
}

// Run brings a package from a registry into a file, as build would have written it.
func (c *pullCmd) Run(env *Env) error {
	ref, err := parseReference(c.Ref)
	if err != nil {
		return err
	}
	to := place{kind: inFile, path: c.PackageFile}
	if c.PackageFile == "" {
		if ref, err = c.resolve(env, ref); err != nil {
			return err
		}
		to.path = oci.FriendlyID(path.Base(ref.Repository), ref.Digest.Hex()) + ".xpkg"
	}
	return copyPackage(env, c.transferFlags, place{kind: inRegistry, ref: ref}, to)
}

// resolve finds the digest, of which the default name of the file is made.
func (c *pullCmd) resolve(env *Env, ref oci.Reference) (oci.Reference, error) {
	remote, err := c.remote(c.imageLimits(), nil, ref.Registry)
	if err != nil {
		return ref, err
	}
	defer remote.Close()
	d, err := remote.Resolve(env.Context, ref)
	return ref.WithDigest(d.Digest), err
}
