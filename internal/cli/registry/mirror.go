package registry

import (
	"errors"
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/mirror"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

type mirrorCmd struct {
	Index  string   `arg:"" help:"Index of the packages, for example registry.example.org/index:main."`
	To     string   `required:"" placeholder:"HOST[/PREFIX]" help:"Registry of the mirror, with an optional prefix of its repositories."`
	Kinds  []string `placeholder:"KIND" help:"Copy only packages that define one of these kinds, such as Bucket or Bucket.s3.aws.upbound.io. The index is not copied then."`
	Verify bool     `help:"Read everything in the mirror, and copy content again that is missing or damaged there."`
	content.IndexKeyFlag
	flags.RegistryFlags
	flags.CacheFlags
}

// Run copies the versions of the current state of the index that the mirror lacks, and then this state.
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
	o := mirror.Options{
		Client: client, Target: c.To, Kinds: c.Kinds, Verify: c.Verify, Records: p.Store(),
		Progress: func(reference string) { task.Set("%s", reference) },
	}
	keys, err := c.Keys(env.Context)
	if err != nil {
		return err
	}
	indexes := &indexer.Client{Remote: client, Store: p.Store(), Keys: keys}
	state, err := indexes.Open(env.Context, ref)
	if err != nil {
		return err
	}
	current, err := state.Catalog()
	if err != nil {
		return err
	}
	result, unreadable := mirror.Run(env.Context, o, &current)
	if unreadable != nil && !errors.Is(unreadable, mirror.ErrUnreadable) && !errors.Is(unreadable, mirror.ErrDamaged) {
		return unreadable
	}
	index, isOwn, err := mirror.CopyIndex(env.Context, o, ref, state)
	if err != nil {
		return err
	}
	task.End()
	if isOwn {
		fmt.Fprintf(
			env.Stderr,
			"note: %s is the index that the registry publishes itself; the index of the source was not copied. Add a prefix to --to to copy it, too.\n",
			terminal.Safe(index.String()),
		)
	}
	return errors.Join(unreadable, describe(env, result, c.To, index))
}

// describe writes the numbers of copies of a run, and the index of the mirror if it has one.
func describe(env *terminal.Env, r mirror.Result, to string, index oci.Reference) error {
	content := wording.Count(r.Versions, "version")
	if r.Artifacts > 0 {
		content += " and " + wording.Count(r.Artifacts, "artifact")
	}
	text := fmt.Sprintf("Copied %s of %s to %s\n", content, wording.Count(r.Packages, "package"), terminal.Safe(to))
	if index.Tag != "" {
		text += fmt.Sprintf("The index of the mirror is %s\n", terminal.Safe(index.String()))
	}
	_, err := fmt.Fprint(env.Stdout, text)
	return err
}
