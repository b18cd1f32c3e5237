package registry

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

type mirrorCmd struct {
	Index string   `arg:"" help:"Index of the packages, for example registry.example.org/index:main."`
	To    string   `required:"" placeholder:"HOST[/PREFIX]" help:"Registry of the mirror, with an optional prefix of its repositories."`
	Kinds []string `placeholder:"KIND" help:"Copy only packages that define one of these kinds, such as Bucket or Bucket.s3.aws.upbound.io. The index is not copied then."`
	content.IndexKeyFlag
	flags.RegistryFlags
	flags.CacheFlags
}

// Run copies the packages that changed since the last run, and then the index.
func (c *mirrorCmd) Run(env *terminal.Env) (err error) {
	ref, err := flags.ParseReference(c.Index)
	if err != nil {
		return err
	}
	p, err := c.Open(0)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	c.Keychain = flags.DataDirFlag{DataDir: c.DataDir}.WriteKeychain()
	client, err := c.Remote(env.Context, oci.Limits{}, nil, ref.Registry)
	if err != nil {
		return err
	}
	defer client.Close()
	task := terminal.StartTask(env.Stderr, "copying packages to %s", c.To)
	defer task.End()
	o := mirror.Options{Client: client, Target: c.To, Kinds: c.Kinds, Progress: func(reference string) { task.Set("%s", reference) }}
	keys, err := c.Keys(env.Context)
	if err != nil {
		return err
	}
	indexes := &indexer.Client{Remote: client, Store: p.Store(), Keys: keys}
	current, err := readIndex(env, indexes, ref)
	if err != nil {
		return err
	}
	former, err := c.former(env, indexes, o, ref)
	if err != nil {
		return err
	}
	result, err := mirror.Run(env.Context, o, former, current)
	if err != nil {
		return err
	}
	if err := mirror.CopyIndex(env.Context, o, ref); err != nil {
		return err
	}
	task.End()
	_, err = fmt.Fprintf(env.Stdout, "Copied %s of %s to %s\n", wording.Count(result.Versions, "version"), wording.Count(result.Packages, "package"), terminal.Safe(c.To))
	return err
}

func readIndex(env *terminal.Env, client *indexer.Client, ref oci.Reference) (*catalog.Catalog, error) {
	r, err := client.Open(env.Context, ref)
	if err != nil {
		return nil, err
	}
	read, err := r.Catalog()
	return &read, err
}

// former returns the index in the mirror, which is the state of the last complete run, and nil if there is none. A mirror of some kinds
// has no index, so all of its versions are compared.
func (c *mirrorCmd) former(env *terminal.Env, client *indexer.Client, o mirror.Options, index oci.Reference) (*catalog.Catalog, error) {
	if len(c.Kinds) > 0 {
		return nil, nil
	}
	ref, err := mirror.TargetIndex(o, index)
	if err != nil {
		return nil, err
	}
	read, err := readIndex(env, client, ref)
	if indexer.IsAbsent(err) {
		return nil, nil
	}
	return read, err
}
