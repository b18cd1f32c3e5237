package cli

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/completion"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/indexes"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/packagecache"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"Shell: bash, zsh, fish or powershell."`
}

// Run prints the completion script of a shell.
func (c completionCmd) Run(env *terminal.Env) error {
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		return err
	}
	return completion.WriteScript(env.Stdout, completion.Tree(parser.Model, nil), c.Shell)
}

// completionTimeout limits how long the completion of a name waits for a cluster. A shell shows nothing meanwhile.
const completionTimeout = 2 * time.Second

// completionValues returns the completions by their names in the struct tags of commands. If a kind precedes
// it, an installed package is completed by its name.
func completionValues(env *terminal.Env, kind string) map[string]completion.Values {
	installed := func(ctx context.Context, line completion.Line) []string { return installedPackages(ctx, line, kind) }
	packageOrVersion := func(ctx context.Context, line completion.Line) []string {
		if len(line.Args) == 1 && kind == "" {
			return append(packageVersions(ctx, line), installed(ctx, line)...)
		}
		return append(installed(ctx, line), taggedReferences(ctx, line.Word)...)
	}
	references := func(ctx context.Context, line completion.Line) []string {
		return append(cachedReferences(ctx, configured[flags.CacheFlags](env)), taggedReferences(ctx, line.Word)...)
	}
	return map[string]completion.Values{
		packageArgument: installed, updateArgument: packageOrVersion, kindArgument: packageKinds, installArgument: func(
			ctx context.Context, line completion.Line,
		) []string {
			return append(packageKinds(ctx, line), references(ctx, line)...)
		}, "reference": references,
		"version": packageVersions, "revision": packageRevisions, "context": kubeconfigContexts,
		"object-format": fixed(view.ObjectFormats()), "list-format": fixed(view.ListFormats()),
		"runtime": fixed(manager.Runtimes), "local-runtime": fixed(manager.LocalRuntimes),
		"privilege": fixed(append(manifests.AllPrivileges(), "*")), "action": fixed(access.Actions()),
		"index-name": func(ctx context.Context, line completion.Line) []string {
			return indexes.Names(ctx, configured[indexes.Flags](env), line.Word)
		},
		"index-kind": func(ctx context.Context, line completion.Line) []string {
			return indexes.KindNames(ctx, configured[indexes.Flags](env), line.Word)
		},
	}
}

// fixed returns a function for a fixed set of values.
func fixed[T ~string](values []T) completion.Values {
	var out []string
	for _, value := range values {
		out = append(out, string(value))
	}
	return func(context.Context, completion.Line) []string { return out }
}

// configured returns flags with their values in the environment and in the configuration file, or the zero value if
// these are not valid, because completion reports no errors.
func configured[T any](env *terminal.Env) T {
	var flags struct {
		Of T `embed:""`
	}
	file, err := readConfig(env)
	if err != nil {
		return flags.Of
	}
	parser, err := kong.New(&flags, kong.Resolvers(file))
	if err != nil {
		return flags.Of
	}
	if _, err := parser.Parse(nil); err != nil {
		var none T
		return none
	}
	return flags.Of
}

// completionWords returns the words of a command line, without the word `xpkg` of the Crossplane CLI, and with
// KIND/NAME for each installed package. If the last word is the name after a kind, it returns the words without the
// kind, and the kind.
func completionWords(app *kong.Application, words []string) (_ []string, kind string) {
	if len(words) == 0 {
		return words, ""
	}
	end := len(words) - 1
	before, last := joinKinds(app, withoutXpkg(words[:end])), words[end]
	command, rest := commandOf(app, before)
	first := slices.IndexFunc(command.Positional, namesPackage)
	at := positionals(command, rest)
	if first < 0 || len(at) == 0 || at[len(at)-1] != len(rest)-1 {
		return append(before, last), ""
	}
	isPackage := len(at)-1 == first || len(at)-1 > first && command.Positional[first].IsSlice()
	if kind = inventory.KindNamed(rest[len(rest)-1]); !isPackage || kind == "" {
		return append(before, last), ""
	}
	return append(slices.Clone(before[:len(before)-1]), last), kind
}

// packageKinds returns the kinds of packages.
func packageKinds(context.Context, completion.Line) []string {
	var out []string
	for _, kind := range v1.PackageKinds() {
		out = append(out, strings.ToLower(kind))
	}
	return out
}

// cachedReferences returns the references in a package cache.
func cachedReferences(ctx context.Context, f flags.CacheFlags) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	names, err := packagecache.References(ctx, f)
	if err != nil {
		return nil
	}
	return names
}

// clusterOf returns the packages of the cluster of a command line.
func clusterOf(ctx context.Context, line completion.Line) (client.Client, *inventory.Inventory, error) {
	return selection.Read(
		ctx, connection.ClusterFlags{Kubeconfig: line.Flags["kubeconfig"], Context: line.Flags["context"]},
		inventory.LoadPackages,
	)
}

// installedPackages returns KIND/NAME of the packages of a cluster, and the names that only one package has; or the
// names of the packages of one kind; with their references. It returns nil if the cluster cannot be read, because
// completion reports no errors.
func installedPackages(ctx context.Context, line completion.Line, kind string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	_, all, err := clusterOf(ctx, line)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range all.Packages {
		switch kind {
		case "":
			out = append(out, inventory.ShortName(p)+"\t"+terminal.Safe(p.PackageSpec().Package))
			if found, err := all.Find(inventory.Name(p.GetName())); err == nil && found == p {
				out = append(out, p.GetName()+"\t"+terminal.Safe(p.PackageSpec().Package))
			}
		case p.PackageKind():
			out = append(out, p.GetName()+"\t"+terminal.Safe(p.PackageSpec().Package))
		}
	}
	return out
}

// namedPackage returns the cluster of a command line, and the installed package of its first argument, or nil
// if there is none.
func namedPackage(ctx context.Context, line completion.Line) (client.Client, v1.Package) {
	cluster, all, err := clusterOf(ctx, line)
	if err != nil || len(line.Args) == 0 {
		return nil, nil
	}
	p, err := all.Find(inventory.Name(line.Args[0]))
	if err != nil {
		return nil, nil
	}
	return cluster, p
}

// packageVersions returns the versions in the repository of the preceding package, newest first.
func packageVersions(ctx context.Context, line completion.Line) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	_, p := namedPackage(ctx, line)
	if p == nil {
		return nil
	}
	return versionsIn(ctx, inventory.RepositoryOf(p))
}

// versionsIn returns the versions in a repository, newest first.
func versionsIn(ctx context.Context, repository string) []string {
	command := dependencies.VersionsCmd{Repository: repository}
	versions, err := command.Releases(&terminal.Env{Context: ctx, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return nil
	}
	return versions
}

// taggedReferences returns the references with the versions in a repository, newest first, once its name with a
// registry and a colon is written.
func taggedReferences(ctx context.Context, word string) []string {
	colon, slash := strings.LastIndexByte(word, ':'), strings.LastIndexByte(word, '/')
	if slash < 0 || colon < slash || strings.Contains(word, "@") ||
		!strings.ContainsAny(word[:strings.IndexByte(word, '/')], ".:") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	versions := versionsIn(ctx, word[:colon])
	for i, v := range versions {
		versions[i] = word[:colon+1] + v
	}
	return versions
}

// packageRevisions returns the numbers of the revisions of the preceding package, with their references.
func packageRevisions(ctx context.Context, line completion.Line) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, p := namedPackage(ctx, line)
	if p == nil {
		return nil
	}
	revisions, err := inventory.ReadRevisions(ctx, cluster, p)
	if err != nil {
		return nil
	}
	var out []string
	for _, rev := range revisions {
		out = append(out, strconv.FormatInt(rev.RevisionSpec().Revision, 10)+"\t"+terminal.Safe(rev.RevisionSpec().Image))
	}
	return out
}

func kubeconfigContexts(_ context.Context, line completion.Line) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = line.Flags["kubeconfig"]
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	var out []string
	for name := range config.Contexts {
		out = append(out, terminal.Safe(name))
	}
	return out
}
