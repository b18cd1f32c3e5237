package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/retention"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// pruneCmd implements `xpkg registry prune`.
type pruneCmd struct {
	Index   string        `arg:"" help:"Index of the packages, for example registry.example.org/index:main. Update it first."`
	Age     time.Duration `default:"2160h" placeholder:"DURATION" help:"Age from which a prerelease can be deleted. Default is 2160h, 90 days."`
	Keep    int           `default:"5" placeholder:"N" help:"Newest prereleases of each package to keep at any age. Default is 5."`
	Undated bool          `help:"Also delete prereleases whose images state no time, such as those of xpkg build without --created."`
	Lock    []string      `placeholder:"FILE" help:"Lock file whose versions are kept. Repeat it for several."`
	Yes     bool          `short:"y" help:"Delete the versions. Without it, they are only listed."`
	content.IndexKeyFlag
	flags.RegistryFlags
	flags.CacheFlags
}

// Run lists or deletes the versions that nothing needs.
func (c *pruneCmd) Run(env *terminal.Env) (err error) {
	ref, err := flags.ParseReference(c.Index)
	if err != nil {
		return err
	}
	rules, err := c.rules(env)
	if err != nil {
		return err
	}
	p, err := c.Open(0)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, p)
	keys, err := c.Keys(env.Context)
	if err != nil {
		return err
	}
	c.Keychain = flags.DataDirFlag{DataDir: c.DataDir}.WriteKeychain()
	client, err := c.Remote(env.Context, oci.Limits{}, nil, ref.Registry)
	if err != nil {
		return err
	}
	defer client.Close()
	index, err := readIndex(env, &indexer.Client{Remote: client, Store: p.Store(), Keys: keys}, ref)
	if err != nil {
		return err
	}
	own, err := c.own(ref, index)
	if err != nil {
		return err
	}
	unfinished, denied, err := retention.Unfinished(env.Context, client, &catalog.Catalog{Histories: own})
	if err != nil {
		return err
	}
	candidates, kept := retention.Select(index, rules, unfinished)
	for _, v := range kept {
		fmt.Fprintf(env.Stderr,
			"note: %s is kept, although its status states that it was deleted: %s. Run `xpkg registry unyank %[1]s` to make it available again.\n",
			terminal.Safe(v.Repository+":"+v.Tag), terminal.Safe(string(v.Why)))
	}
	all := len(candidates)
	candidates = slices.DeleteFunc(
		candidates, func(v retention.Candidate) bool { return !isIn(ref.Registry, v.Repository) },
	)
	if omitted := all - len(candidates); omitted > 0 {
		fmt.Fprintf(
			env.Stderr, "note: %s omitted, in other registries than %s; prune an index of each registry\n",
			wording.Count(omitted, "version"), ref.Registry,
		)
	}
	return c.prune(env, client, candidates, denied)
}

// own returns the packages in the registry of an index. It fails if there are only packages in other registries, as in
// the index of a mirror: then the user could mean either registry.
func (c *pruneCmd) own(ref oci.Reference, index *catalog.Catalog) ([]catalog.History, error) {
	own := slices.DeleteFunc(
		slices.Clone(index.Histories), func(h catalog.History) bool { return !isIn(ref.Registry, h.Repository) },
	)
	if len(own) > 0 || len(index.Histories) == 0 {
		return own, nil
	}
	other, _, _ := strings.Cut(index.Histories[0].Repository, "/")
	right := other + "/index:main"
	if named, err := oci.ParseReference(index.Config.Name, oci.ParseOptions{}); err == nil && named.Registry == other {
		right = named.WithTag(ref.Tag).String()
	}
	return nil, terminal.ErrUsage.New(
		nil, "the index %s is in the registry %s, and its packages are in %s", c.Index, ref.Registry, other,
	).
		WithDo(
			"To delete prereleases there, run `xpkg registry prune %s`. To delete them in %s, name an index of the packages there: that of its server, such as %[2]s/index:main, or one that `xpkg index build` has made.",
			right, ref.Registry,
		)
}

// isIn reports whether a repository is in a registry.
func isIn(registry, repository string) bool { return strings.HasPrefix(repository, registry+"/") }

// rules returns the rules of the flags.
func (c *pruneCmd) rules(env *terminal.Env) (retention.Rules, error) {
	rules := retention.Rules{Age: c.Age, Keep: c.Keep, Undated: c.Undated, Now: time.Now()}
	if c.Age < 0 || c.Keep < 0 {
		return rules, terminal.ErrUsage.New(nil, "--age and --keep cannot be negative")
	}
	for _, file := range c.Lock {
		text, err := flags.ReadFile(env.Context, "the lock file", file)
		if err != nil {
			return rules, err
		}
		f, err := lockfile.Parse(text)
		if err != nil {
			x := errcode.From(err)
			return rules, x.Code.New(x.Why, "%s: %s", file, x.What).WithDo("%s", x.Do)
		}
		rules.Locks = append(rules.Locks, f)
	}
	return rules, nil
}

// dateOf returns the date of a time, and "-" for none.
func dateOf(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateOnly)
}

// prune checks each candidate immediately before it is deleted, because the registry is in use. It omits the
// repositories that the user may not read or change, and fails with them at the end.
func (c *pruneCmd) prune(
	env *terminal.Env, client *remote.Client, candidates []retention.Candidate, denied []retention.Denied,
) error {
	count := 0
	var refused error
	for i, v := range candidates {
		if slices.ContainsFunc(denied, func(d retention.Denied) bool { return d.Repository == v.Repository }) {
			continue
		}
		name := terminal.Safe(v.Repository + ":" + v.Tag)
		needed, err := retention.Check(env.Context, client, v)
		if err == nil && needed == "" && c.Yes {
			var existed bool
			existed, err = retention.Delete(env.Context, client, v)
			switch {
			case errors.Is(err, remote.ErrRefused):
				needed, refused, err = retention.Needed(err.Error()), err, nil
			case err == nil && !existed:
				needed = retention.DeletedAlready
			}
		}
		switch {
		case errors.Is(err, remote.ErrUnauthorized):
			denied = append(denied, retention.Denied{Repository: v.Repository, Err: err})
			continue
		case err != nil:
			return c.interrupted(env, count, candidates[i:], err)
		}
		if needed != "" {
			fmt.Fprintf(env.Stderr, "note: %s is kept: %s\n", name, terminal.Safe(string(needed)))
			continue
		}
		count++
		if v.Status != nil && v.Status.State == catalog.Removed && !c.Yes {
			fmt.Fprintf(
				env.Stderr,
				"note: the deletion of %s was interrupted, or it was pushed again since; to keep it, name a lock file that contains it with --lock\n",
				name,
			)
		}
		if _, err := fmt.Fprintf(env.Stdout, "%s  %s  %s\n", name, v.Digest.Short(), dateOf(v.Created)); err != nil {
			return err
		}
	}
	if count == 0 && refused != nil && len(denied) == 0 {
		return refused // The registry may allow no deletion at all.
	}
	if c.Yes {
		fmt.Fprintf(
			env.Stderr, "Deleted %s. The garbage collection of the registry frees the space.\n", wording.Count(count, "version"),
		)
	} else {
		fmt.Fprintf(
			env.Stderr, "Would delete %s. Nothing was changed; --yes deletes them.\n", wording.Count(count, "version"),
		)
	}
	return errDenied(denied)
}

// errDenied returns the error for repositories that the user may not read or change; nil if there are none.
func errDenied(denied []retention.Denied) error {
	if len(denied) == 0 {
		return nil
	}
	var names []string
	for _, d := range denied {
		names = append(names, d.Repository)
	}
	const most = 10
	return remote.ErrUnauthorized.New(
		denied[0].Err, "cannot prune %s: %s", wording.Count(len(names), "repository"), wording.Few(names, most, ", "),
	).
		WithDo(
			"All other repositories are done. Run the command again as a user who may delete versions and change their status there (`xpkg login`), or leave these repositories to their owners.",
		)
}

// interrupted prints what a run has done that fails at the first of the given versions, and returns the error.
func (c *pruneCmd) interrupted(env *terminal.Env, deleted int, rest []retention.Candidate, err error) error {
	if c.Yes {
		fmt.Fprintf(env.Stderr,
			"note: deleted %s, stopped at %s, and did not reach %s; run `xpkg index update %s` and this command again to continue\n",
			wording.Count(deleted, "version"), terminal.Safe(rest[0].Repository+":"+rest[0].Tag),
			wording.Count(len(rest)-1, "other version"), terminal.Safe(c.Index))
	}
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
