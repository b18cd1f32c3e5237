package cli

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

type pushCmd struct {
	// Words are the reference, after the kind that the packages guide writes
	// before it.
	Words       []string `arg:"" name:"ref" help:"Where to push to, for example ghcr.io/org/provider-x:v0.1.0. The kind of the package may stand before it."`
	PackageFile string   `short:"f" placeholder:"FILE" help:"Package to push. Default is the only .xpkg file in this folder."`
}

// Run pushes a package and says which digest it has there.
func (c *pushCmd) Run(env *Env) error {
	words := c.Words
	if len(words) == 2 && kindOf(words[0]) != "" {
		words = words[1:]
	}
	if len(words) != 1 {
		return ErrUsage.New(nil, "push takes one reference, and before it the kind of the package if you like")
	}
	ref, err := oci.ParseReference(words[0], oci.ParseOptions{DefaultRegistry: defaultRegistry})
	if err != nil {
		return err
	}
	file := c.PackageFile
	if file == "" {
		if file, err = onePackageFile("."); err != nil {
			return err
		}
	}
	return push(env, file, ref)
}

func push(env *Env, file string, ref oci.Reference) (err error) {
	archive, err := oci.OpenArchive(env.Context, file, oci.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	remote := newRemote()
	defer remote.Close()
	progress := newProgress(env.Stderr)
	defer progress.end()
	if progress.tty {
		progress.say("pushing %s to %s", file, ref)
	}
	digest, err := remote.Push(env.Context, ref, archive)
	progress.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", ref.WithDigest(digest))
	return err
}

// newRemote is a client of registries with the user's own credentials.
func newRemote() *oci.Remote {
	return oci.NewRemote(oci.RemoteOptions{Keychain: authn.DefaultKeychain, UserAgent: "xpkg/" + Version})
}
