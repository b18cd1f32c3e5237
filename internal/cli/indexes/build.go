package indexes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// BuildCmd implements `xpkg index build`.
type BuildCmd struct {
	IndexRef   string   `arg:"" name:"index" help:"Reference of the index, for example registry.example.com/index:main."`
	Repository []string `placeholder:"REPO" help:"Repository of a package. Repeat it for several."`
	List       string   `placeholder:"FILE" help:"File with a repository in each line. Empty lines and lines that begin with # are ignored."`
	Registry   []string `placeholder:"HOST[/PREFIX]" help:"Registry that lists its repositories, or a prefix in one. Repeat it for several."`
	From       []string `placeholder:"INDEX" help:"Reference of another index whose packages are included. Repeat it for several."`
	Name       string   `placeholder:"NAME" help:"Name of the index. Default is its repository."`
	Owner      []string `placeholder:"GROUP=REPO" help:"Repository, or a prefix of repositories, that owns an API group. Its packages are preferred for kinds of the group. Repeat it for several."`
	buildFlags
}

// Run builds and pushes the index.
func (c *BuildCmd) Run(env *terminal.Env) error {
	if err := c.checkValidity(); err != nil {
		return err
	}
	return withIndex(env, c.IndexRef, c.ContentFlags, func(ref oci.Reference, a *access) error {
		sources, err := c.sources(env)
		if err != nil {
			return err
		}
		if isSource(sources, ref) {
			return terminal.ErrUsage.New(nil, "the index %s cannot be a source of itself", ref).
				WithDo("Omit `--from %s`. `xpkg index update %[1]s` adds the changes of its sources.", ref)
		}
		owners, err := parseOwners(c.Owner)
		if err != nil {
			return err
		}
		current, err := indexer.Current(env.Context, a.remote, ref)
		if err != nil {
			return err
		}
		before, err := former(env, a, ref)
		isDamaged := indexer.IsDamaged(err)
		replaced, err := damaged(env, a, ref, err)
		if err != nil {
			return err
		}
		builder, task, err := c.builder(env, a, true)
		if err != nil {
			return err
		}
		config := catalog.Config{Name: cmp.Or(c.Name, ref.Name()), Sources: sources, Owners: owners}
		if before == nil && replaced.Sequence == 0 {
			// The registry may have lost the tag, or the configuration. Clients that have seen the newest state accept one that
			// continues it.
			client := indexer.Client{Store: a.cache.Store()}
			if replaced, err = client.Seen(env.Context, ref, config.Name); err != nil {
				return err
			}
			if isDamaged && replaced.Sequence == 0 {
				fmt.Fprintf(
					env.Stderr,
					"warning: its sequence cannot be read. Clients that have used the index must run `xpkg index show %s --forget` once.\n",
					ref,
				)
			}
		}
		built, err := fileutil.Await(
			env.Context, func() (catalog.Catalog, error) { return builder.Build(env.Context, config) },
		)
		task.End()
		if err != nil {
			return err
		}
		loses, err := c.losesSignature(env, a, ref, current, replaced.Digest)
		if err != nil {
			return err
		}
		if loses {
			fmt.Fprintf(
				env.Stderr,
				"warning: the former state of %s is signed, and the next one is not: clients with a key refuse it. Sign it with `xpkg index update --sign-key`.\n",
				ref,
			)
		}
		return c.publish(env, a, ref, current, &indexer.Publishing{
			Former: before, Replaced: replaced, Catalog: built, Snapshot: true,
		})
	})
}

// isSource reports whether an index is among sources.
func isSource(sources []catalog.Source, index oci.Reference) bool {
	return slices.ContainsFunc(
		sources, func(s catalog.Source) bool { return s.Kind == catalog.SourceIndex && s.Location == index.String() },
	)
}

// repositoryName returns the name of a repository that a user wrote. It refuses a tag or a digest.
func repositoryName(text string) (string, error) {
	ref, err := oci.ParseReference(text, oci.ParseOptions{DefaultRegistry: flags.DefaultRegistry, AllowUntagged: true})
	if err == nil && (ref.Tag != "" || !ref.Digest.IsZero()) {
		return "", terminal.ErrUsage.New(nil, "%s is a version, and an index has all versions of a repository", ref).
			WithDo("Write %s.", ref.Name())
	}
	return ref.Name(), err
}

// readList returns the names of the repositories in the lines of a file. An error names the line.
func readList(ctx context.Context, file string) ([]string, error) {
	text, err := flags.ReadFile(ctx, "the list of repositories", file)
	if err != nil {
		return nil, err
	}
	var names []string
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, err := repositoryName(line)
		if err != nil {
			return nil, terminal.ErrUsage.New(err, "line %d of %s is not a repository", number, file)
		}
		names = append(names, name)
	}
	return names, nil
}

// sources returns the sources of the flags.
func (c *BuildCmd) sources(env *terminal.Env) ([]catalog.Source, error) {
	var repositories []string
	for _, r := range c.Repository {
		name, err := repositoryName(r)
		if err != nil {
			return nil, err
		}
		repositories = append(repositories, name)
	}
	if c.List != "" {
		listed, err := readList(env.Context, c.List)
		if err != nil {
			return nil, err
		}
		repositories = append(repositories, listed...)
	}
	var out []catalog.Source
	if slices.Sort(repositories); len(repositories) > 0 {
		out = append(out, catalog.Source{Kind: catalog.SourceRepositories, Repositories: slices.Compact(repositories)})
	}
	for _, r := range c.Registry {
		host, prefix, _ := strings.Cut(r, "/")
		name, err := flags.ParseHost(host)
		if err != nil {
			return nil, err
		}
		location := strings.TrimSuffix(name+"/"+prefix, "/")
		out = append(out, catalog.Source{Kind: catalog.SourceRegistry, Location: location})
	}
	for _, i := range c.From {
		ref, err := flags.ParseReference(i)
		if err != nil {
			return nil, err
		}
		out = append(out, catalog.Source{Kind: catalog.SourceIndex, Location: ref.String()})
	}
	if len(out) == 0 {
		return nil, terminal.ErrUsage.New(nil, "the index has no sources").
			WithDo("Name packages with --repository or --list, a registry with --registry, or another index with --from.")
	}
	return out, nil
}

// parseOwners parses owners of API groups of the form GROUP=REPOSITORY.
func parseOwners(texts []string) ([]catalog.GroupOwner, error) {
	var out []catalog.GroupOwner
	for _, text := range texts {
		group, repository, found := strings.Cut(text, "=")
		if !found {
			return nil, terminal.ErrUsage.New(nil, "%q is not the owner of an API group", text).
				WithDo("Write GROUP=REPOSITORY, such as s3.aws.upbound.io=xpkg.upbound.io/upbound.")
		}
		owner, err := repositoryName(repository)
		if err != nil {
			return nil, err
		}
		out = append(out, catalog.GroupOwner{Group: group, Owner: owner})
	}
	return catalog.SortOwners(out)
}

// UpdateCmd implements `xpkg index update`.
type UpdateCmd struct {
	IndexRef string `arg:"" name:"index" help:"Reference of the index."`
	Moved    bool   `help:"Check all known versions for tags that moved. This takes one request for each version."`
	Repair   bool   `help:"Read all packages again, and publish the index again in place of a state that cannot be used: one that is damaged, missing, or older than the newest one that this machine has seen."`
	buildFlags
}

// Run updates and pushes the index. It pushes nothing if nothing changed and the index stays valid for half of its
// time.
func (c *UpdateCmd) Run(env *terminal.Env) error {
	if err := c.checkValidity(); err != nil {
		return err
	}
	return withIndex(env, c.IndexRef, c.ContentFlags, func(ref oci.Reference, a *access) error {
		if c.Repair {
			return c.repair(env, a, ref)
		}
		before, content, err := published(env, a, ref)
		if err != nil {
			return err
		}
		c.Texts = c.Texts || len(content.Texts) > 0
		builder, task, err := c.builder(env, a, c.Moved)
		if err != nil {
			return err
		}
		type result struct {
			next     catalog.Catalog
			problems []indexer.Problem
		}
		got, err := fileutil.Await(env.Context, func() (r result, err error) {
			r.next, r.problems, err = builder.Update(env.Context, &content, before.Config())
			return r, err
		})
		task.End()
		if err != nil {
			return err
		}
		for _, p := range got.problems {
			fmt.Fprintf(env.Stderr, "warning: %s keeps its former content: %s\n", p.Repository, terminal.Safe(p.Err.Error()))
		}
		if len(catalog.Diff(&content, &got.next)) == 0 && !indexer.RenewalIsDue(before.Config(), c.ValidFor) {
			signed, err := c.signUnchanged(env, a, ref, before.Manifest().Digest)
			switch {
			case err != nil:
				return err
			case signed:
				fmt.Fprintf(env.Stdout, "%s is up to date, and signed with the key now\n", ref)
			default:
				fmt.Fprintf(env.Stdout, "%s is up to date\n", ref)
			}
			return nil
		}
		current := before.Manifest().Digest
		if err := c.checkSigned(env, a, ref, current); err != nil {
			return err
		}
		return c.publish(env, a, ref, current, &indexer.Publishing{
			Former: before, FormerCatalog: &content, Catalog: got.next,
		})
	})
}

// repair publishes the index again, as the continuation of the newest state that is known.
func (c *UpdateCmd) repair(env *terminal.Env, a *access, ref oci.Reference) error {
	current, err := indexer.Current(env.Context, a.remote, ref)
	if err != nil {
		return err
	}
	client := indexer.Client{Remote: a.remote, Store: a.cache.Store()}
	m, config, err := client.Last(env.Context, ref)
	if err != nil {
		return err
	}
	if err := c.checkSigned(env, a, ref, current, m.Digest); err != nil {
		return err
	}
	c.Texts = c.Texts || m.Text != nil
	builder, task, err := c.builder(env, a, true)
	if err != nil {
		return err
	}
	built, err := fileutil.Await(
		env.Context, func() (catalog.Catalog, error) { return builder.Build(env.Context, config) },
	)
	task.End()
	if err != nil {
		return err
	}
	if unread := builder.Unread(); len(unread) > 0 {
		return unread[0].Err
	}
	if c.ValidFor == 0 && !config.Expires.IsZero() {
		c.ValidFor = config.Expires.Sub(config.Created)
	}
	return c.publish(env, a, ref, current, &indexer.Publishing{
		Replaced: indexer.Replaced{Sequence: config.Sequence, Digest: m.Digest}, Catalog: built, Snapshot: true,
	})
}

// published returns the published state of an index with its content. Its errors name the command that replaces a state
// that cannot be used.
func published(env *terminal.Env, a *access, ref oci.Reference) (*catalog.Reader, catalog.Catalog, error) {
	r, err := former(env, a, ref)
	if err == nil && r == nil {
		err = indexer.ErrIndexNotFound.New(nil, "the index %s does not exist", ref)
	}
	if err != nil {
		return nil, catalog.Catalog{}, repairable(ref, err)
	}
	content, err := r.Catalog()
	return r, content, repairable(ref, err)
}

// VerifyCmd implements `xpkg index verify`.
type VerifyCmd struct {
	IndexRef string `arg:"" name:"index" help:"Reference of the index."`
	readFlags
}

// Run reads all of the published index from its registry, builds it again, and compares both.
func (c *VerifyCmd) Run(env *terminal.Env) error {
	return withIndex(env, c.IndexRef, c.ContentFlags, func(ref oci.Reference, a *access) error {
		index, content, err := published(env, a, ref)
		if err != nil {
			return err
		}
		m := index.Manifest()
		client := indexer.Client{Remote: a.remote}
		if err := client.VerifyStored(env.Context, ref, &m); err != nil {
			return repairable(ref, err)
		}
		c.Texts = c.Texts || len(content.Texts) > 0
		builder, task, err := c.builder(env, a, true)
		if err != nil {
			return err
		}
		built, err := fileutil.Await(
			env.Context, func() (catalog.Catalog, error) { return builder.Build(env.Context, index.Config()) },
		)
		task.End()
		if err != nil {
			return err
		}
		events := catalog.Diff(&content, &built)
		// What cannot be read now is no difference.
		unread := builder.Unread()
		isUnread := func(e catalog.Event) bool {
			return slices.ContainsFunc(unread, func(p indexer.Problem) bool { return p.Repository == e.Repository })
		}
		hasUnread := slices.ContainsFunc(events, isUnread)
		events = slices.DeleteFunc(events, isUnread)
		for _, e := range events {
			fmt.Fprintln(env.Stdout, eventText(e))
		}
		switch {
		case hasUnread:
			return unread[0].Err
		case len(events) > 0:
			fmt.Fprintf(env.Stderr,
				"`xpkg index update %s --moved` adds these changes to the index. If only your credentials can read these packages, a public index does not contain them: "+
					"run the command without credentials, for example with DOCKER_CONFIG set to an empty folder.\n", ref)
			return terminal.ChangesPending
		}
		fmt.Fprintf(env.Stdout, "OK: %s equals its sources\n", ref)
		return nil
	})
}
