package registry

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// versionFlags name a version in any registry.
type versionFlags struct {
	Package string `arg:"" help:"Version of a package, for example ghcr.io/org/provider-x:v0.1.0."`
	flags.RegistryFlags
	flags.DataDirFlag
}

// reasonFlags are the reason of a status.
type reasonFlags struct {
	Reason     string `enum:"broken,security,licence,renamed,other" default:"other" placeholder:"REASON" help:"Class of the reason: broken, security, licence, renamed or other. Default is other."`
	Message    string `placeholder:"TEXT" help:"Reason in one line, for users of the version."`
	ReplacedBy string `placeholder:"PACKAGE" help:"Package or version to use instead."`
}

func (f reasonFlags) status(state catalog.State) catalog.Status {
	return catalog.Status{State: state, Reason: catalog.Reason(f.Reason), Message: f.Message, ReplacedBy: f.ReplacedBy}
}

// version returns the reference and a client that can write to its registry.
func (f *versionFlags) version(env *terminal.Env) (oci.Reference, *remote.Client, error) {
	ref, err := flags.ParseReference(f.Package)
	if err != nil {
		return ref, nil, err
	}
	if !ref.Digest.IsZero() {
		return ref, nil, terminal.ErrUsage.New(nil, "the status belongs to a version: name it by its tag")
	}
	f.Keychain = f.WriteKeychain()
	client, err := f.Remote(env.Context, oci.Limits{}, nil, ref.Registry)
	return ref, client, err
}

// write writes a status and prints it.
func (f *versionFlags) write(env *terminal.Env, status catalog.Status, done string) error {
	ref, client, err := f.version(env)
	if err != nil {
		return err
	}
	defer client.Close()
	digest, err := packagestatus.Write(env.Context, client, ref, status)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s %s (%s)\n", done, terminal.Safe(ref.String()), digest.Short())
	return err
}

type yankCmd struct {
	versionFlags
	reasonFlags
}

// Run yanks a version.
func (c *yankCmd) Run(env *terminal.Env) error {
	return c.write(env, c.status(catalog.Yanked), "Yanked")
}

type deprecateCmd struct {
	versionFlags
	reasonFlags
}

// Run deprecates a version.
func (c *deprecateCmd) Run(env *terminal.Env) error {
	return c.write(env, c.status(catalog.Deprecated), "Deprecated")
}

type unyankCmd struct{ versionFlags }

// Run withdraws the status of a version.
func (c *unyankCmd) Run(env *terminal.Env) error {
	return c.write(env, catalog.Status{State: catalog.Available}, "Available again:")
}

type deleteCmd struct {
	versionFlags
	reasonFlags
}

// Run deletes a version.
func (c *deleteCmd) Run(env *terminal.Env) error {
	ref, client, err := c.version(env)
	if err != nil {
		return err
	}
	defer client.Close()
	digest, err := packagestatus.Delete(env.Context, client, ref, c.status(catalog.Removed))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "Deleted %s (%s)\n", terminal.Safe(ref.String()), digest.Short())
	return err
}
