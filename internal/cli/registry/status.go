package registry

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
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

// status returns the status with a state. It fails if the replacement is neither a version nor a package, which no
// client could name in a command.
func (f reasonFlags) status(state catalog.State) (catalog.Status, error) {
	s := catalog.Status{State: state, Reason: catalog.Reason(f.Reason), Message: f.Message, ReplacedBy: f.ReplacedBy}
	if s.ReplacedBy == "" || packagestatus.IsVersion(s.ReplacedBy) {
		return s, nil
	}
	_, err := oci.ParseReference(s.ReplacedBy, oci.ParseOptions{
		DefaultRegistry: flags.DefaultRegistry, AllowUntagged: true,
	})
	if err == nil && strings.Contains(s.ReplacedBy, "/") {
		return s, nil
	}
	return s,
		terminal.ErrUsage.New(err, "--replaced-by %s is neither a version nor a package", terminal.Safe(s.ReplacedBy)).
			WithDo(
				"Name a version of the package, such as v1.1.1, or another package with its registry, such as registry.example.org/acme/ships.",
			)
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

// shared returns the reference with the digest of its content, and the other versions with this content. It fails for a
// tag that can move, such as latest, of a version.
func (f *versionFlags) shared(
	env *terminal.Env, client *remote.Client, ref oci.Reference, command string,
) (oci.Reference, []string, error) {
	current, err := client.Resolve(env.Context, ref)
	if err != nil {
		return ref, nil, err
	}
	content := ref.WithDigest(current.Digest)
	versions, err := packagestatus.SharedBy(env.Context, client, content)
	if err == nil && len(versions) > 0 && !packagestatus.IsVersion(ref.Tag) {
		err = terminal.ErrUsage.New(
			nil, "%s is the version %s, whose status the command would change", terminal.Safe(ref.String()),
			wording.Few(versions, mostNamed, ", "),
		).
			WithDo("Name the version: `xpkg registry %s %s`.", command, terminal.Safe(ref.WithTag(versions[0]).String()))
	}
	return content, versions, err
}

// mostNamed is the number of versions that a message names.
const mostNamed = 5

// statusFlags are the flags of a command that changes the status of a version.
type statusFlags struct {
	versionFlags
	terminal.ConsentFlag
}

// write writes a status and prints it. The status of a version is that of all versions with the same content, for which
// the user is asked.
func (f *statusFlags) write(env *terminal.Env, status catalog.Status, command, done string) error {
	ref, client, err := f.version(env)
	if err != nil {
		return err
	}
	defer client.Close()
	content, versions, err := f.shared(env, client, ref, command)
	if err != nil {
		return err
	}
	if len(versions) > 0 {
		others := wording.Few(versions, mostNamed, ", ")
		fmt.Fprintf(
			env.Stderr, "note: the status also applies to %s, with the same content as %s\n", terminal.Safe(others),
			terminal.Safe(ref.Tag),
		)
		if err := f.Consent(env, "change the status of "+others+" too"); err != nil {
			return errcode.From(err).
				WithDo("Nothing was changed. Use --yes to change the status of all versions with this content.")
		}
	}
	digest, err := packagestatus.Write(env.Context, client, content, status)
	if err != nil {
		return err
	}
	return env.Say("%s %s (%s)\n", done, terminal.Safe(ref.String()), digest.Short())
}

type yankCmd struct {
	statusFlags
	reasonFlags
}

// Run yanks a version.
func (c *yankCmd) Run(env *terminal.Env) error {
	status, err := c.status(catalog.Yanked)
	if err != nil {
		return err
	}
	return c.write(env, status, "yank", "Yanked")
}

type deprecateCmd struct {
	statusFlags
	reasonFlags
}

// Run deprecates a version.
func (c *deprecateCmd) Run(env *terminal.Env) error {
	status, err := c.status(catalog.Deprecated)
	if err != nil {
		return err
	}
	return c.write(env, status, "deprecate", "Deprecated")
}

type unyankCmd struct{ statusFlags }

// Run withdraws the status of a version.
func (c *unyankCmd) Run(env *terminal.Env) error {
	return c.write(env, catalog.Status{State: catalog.Available}, "unyank", "Available again:")
}

type deleteCmd struct {
	versionFlags
	reasonFlags
}

// Run deletes a version.
func (c *deleteCmd) Run(env *terminal.Env) error {
	status, err := c.status(catalog.Removed)
	if err != nil {
		return err
	}
	ref, client, err := c.version(env)
	if err != nil {
		return err
	}
	defer client.Close()
	content, versions, err := c.shared(env, client, ref, "delete")
	if err != nil {
		return err
	}
	if len(versions) > 0 {
		return terminal.ErrUsage.New(
			nil, "%s has the same content as %s, which the deletion would delete, too", terminal.Safe(ref.String()),
			wording.Few(versions, mostNamed, ", "),
		).
			WithDo("Exclude the content from new installations with `xpkg registry yank %s --yes`.", terminal.Safe(ref.String()))
	}
	digest, err := packagestatus.Delete(env.Context, client, content, status)
	if err != nil {
		return err
	}
	return env.Say("Deleted %s (%s)\n", terminal.Safe(ref.String()), digest.Short())
}
