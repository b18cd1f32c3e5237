// Package artifact contains the commands that read and copy packages in registries and
// files: pull, copy, inspect, extract, login and logout.
package artifact

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// CopyCmd implements `xpkg copy`.
type CopyCmd struct {
	Source      string `arg:"" name:"src" help:"Package to copy: a reference, a .xpkg file, oci:DIR for the folder of an OCI layout, or - for standard input."`
	Destination string `arg:"" name:"dst" help:"Destination: a reference, a file, oci:DIR, or - for standard output."`
	location.TransferFlags
	flags.DataDirFlag
}

// Run copies a package with all of its content, byte for byte, and then what belongs to it, such as its signatures.
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
	from, err = copyPackage(env, c.TransferFlags, from, to)
	if err != nil || from.Kind != location.Registry {
		return err
	}
	if to.Kind == location.Registry && to.Ref.SameRepository(from.Ref) {
		return nil
	}
	p := terminal.StartTask(env.Stderr, "copying what belongs to %s", from)
	defer p.End()
	return c.WithOpened(env, p, from, []location.Location{to}, func(m location.Transfer, o *location.Opened) error {
		return copyAttached(env, p, m.Remote, o, to)
	})
}

// copyPackage copies a package and prints the new location. It returns the source, with the digest if it is in a
// registry.
func copyPackage(
	env *terminal.Env, flags location.TransferFlags, from, to location.Location,
) (location.Location, error) {
	p := terminal.StartTask(env.Stderr, "copying %s to %s", from, to)
	defer p.End()
	source := from
	err := flags.Rewrite(env, p, from, to, func(_ location.Transfer, o *location.Opened) (oci.Artifact, string, error) {
		source = o.Location
		return o, o.Ref.Tag, nil
	})
	return source, err
}

// copyAttached copies the artifacts that belong to a package, such as signatures, and reports each one. It fails if
// the target does not take all of them. Files have no place for them.
func copyAttached(
	env *terminal.Env, p *terminal.Task, client *remote.Client, o *location.Opened, to location.Location,
) error {
	all, err := client.FindAttached(env.Context, o.Ref, o)
	switch {
	case err != nil && to.Kind != location.Registry:
		fmt.Fprintf(
			p, "note: %s contains the package alone; what belongs to it cannot be read: %s\n", to, terminal.Safe(err.Error()),
		)
		return nil
	case err != nil:
		return errcode.From(err).
			Code.New(err, "the package is copied, but what belongs to it, such as signatures, cannot be read")
	}
	var left []string
	var failed error
	for _, a := range all {
		if to.Kind != location.Registry {
			left = append(left, a.String())
			continue
		}
		copied, err := client.CopyAttached(env.Context, a, to.Ref)
		switch {
		case err != nil:
			failed = cmp.Or(failed, err)
			left = append(left, a.String())
		case copied:
			fmt.Fprintf(p, "with %s\n", terminal.Safe(a.String()))
		}
	}
	switch {
	case failed != nil:
		return errcode.From(failed).Code.New(failed, "the package is copied, but not %s", strings.Join(left, ", "))
	case len(left) > 0:
		fmt.Fprintf(p, "note: %s contains the package alone, and not %s\n", to, terminal.Safe(strings.Join(left, ", ")))
	}
	return nil
}
