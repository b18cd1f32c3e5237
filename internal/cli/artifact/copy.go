// Package artifact contains the commands that read and copy packages in registries and
// files: pull, copy, inspect, extract, login and logout.
package artifact

import (
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// CopyCmd implements `xpkg copy`.
type CopyCmd struct {
	Source      string `arg:"" name:"src" help:"Package to copy: a reference, a .xpkg file, oci:DIR for the folder of an OCI layout, or - for standard input."`
	Destination string `arg:"" name:"dst" help:"Destination: a reference, a file, oci:DIR, or - for standard output."`
	location.TransferFlags
	flags.DataDirFlag
}

// Run copies a package with all of its content, byte for byte.
func (c *CopyCmd) Run(env *terminal.Env) error {
	from, err := location.Parse(c.Source)
	if err != nil {
		return err
	}
	to, err := location.Parse(c.Destination)
	if err != nil {
		return err
	}
	c.Keychain = c.WriteKeychain()
	return copyPackage(env, c.TransferFlags, from, to)
}

// copyPackage copies a package and prints the new location.
func copyPackage(env *terminal.Env, flags location.TransferFlags, from, to location.Location) error {
	p := terminal.StartTask(env.Stderr, "copying %s to %s", from, to)
	defer p.End()
	return flags.Rewrite(env, p, from, to, func(_ location.Transfer, o *location.Opened) (oci.Artifact, string, error) {
		return o, o.Ref.Tag, nil
	})
}
