package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// allRoots returns the roots that the arguments and --kind select. A kind alone does not select the current folder.
func (c *ResolveCmd) allRoots(env *terminal.Env) ([]dependency.Root, error) {
	var out []dependency.Root
	if len(c.Packages) > 0 || len(c.Kind) == 0 {
		roots, err := c.roots(env, c.DefaultRegistry)
		if err != nil || len(c.Kind) == 0 {
			return roots, err
		}
		out = roots
	}
	for _, text := range c.Kind {
		k, err := provide.Parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, dependency.Root{CRD: k.String()})
	}
	return out, nil
}

// useKinds lets the resolver select packages for kinds.
func (c *ResolveCmd) useKinds(r *rootResolver) error {
	finder := r.source.Finder(c.KindIndexFlag)
	finder.Command = c.command
	finder.Selected = map[dependency.KindRef]string{}
	for _, text := range c.Provider {
		name, repository, _ := strings.Cut(text, "=")
		k, err := provide.Parse(name)
		if err != nil {
			return err
		}
		ref, err := oci.ParseReference(repository, oci.ParseOptions{AllowUntagged: true})
		if err != nil || ref.Tag != "" || !ref.Digest.IsZero() {
			return terminal.ErrUsage.New(err, "%s names no repository", text).
				WithDo("Write KIND=REPOSITORY, with a repository such as xpkg.upbound.io/upbound/provider-aws-s3.")
		}
		finder.Selected[k] = ref.Name()
	}
	r.Kinds = finder
	r.source.Indexes = c.KindIndexFlag
	return nil
}

// resolveKinds resolves a dependency tree whose packages define the kinds for which they were selected: an index, and
// the record of another version, are only claims. A version without its kind is not selected, and the tree is resolved
// again without it. It fails with KindNotProvided if a tree without such versions does not exist.
func (r *rootResolver) resolveKinds(
	env *terminal.Env, q resolver.Request, before lockfile.File,
) (resolver.Result, error) {
	versions := provide.ExcludeVersions(r.Resolver)
	for {
		got, err := r.resolve(env, q)
		if err != nil {
			return got, versions.Explain(err)
		}
		excluded, err := r.excludeVersion(env.Context, versions, before, got.File)
		if !excluded {
			return got, err
		}
		fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(errcode.From(err).What))
	}
}

// excludeVersion excludes the first version whose content does not define a kind for which it was selected, and returns
// the error KindNotProvided. Packages that the former lock file has with the same content and kinds are not read again.
func (r *rootResolver) excludeVersion(
	ctx context.Context, versions *provide.DefiningVersions, before, got lockfile.File,
) (excluded bool, err error) {
	for _, p := range got.Packages {
		known := slices.ContainsFunc(before.Packages, func(b lockfile.Package) bool {
			return b.Repository == p.Repository && b.Digest == p.Digest && slices.Equal(b.Provides, p.Provides)
		})
		if len(p.Provides) == 0 || known {
			continue
		}
		pkg, err := r.read(ctx, p)
		if err != nil {
			return false, err
		}
		if excluded, err := versions.Check(p.Reference(), pkg, p.Provides...); err != nil {
			return excluded, err
		}
	}
	return false, nil
}

// command returns this command with a selected package for a kind.
func (c *ResolveCmd) command(kind dependency.KindRef, candidate provide.Candidate) string {
	words := slices.Clone(c.Packages)
	for _, k := range c.Kind {
		words = append(words, "--kind", k)
	}
	for _, p := range c.Provider {
		words = append(words, "--provider", p)
	}
	words = append(words, "--provider", kind.String()+"="+candidate.Repository)
	if c.Lock != "" {
		words = append(words, "--lock", c.Lock)
	}
	out := "xpkg resolve"
	for _, w := range words {
		out += " " + wording.ShellWord(w)
	}
	return out
}
