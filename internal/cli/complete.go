package cli

import (
	"context"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/completion"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
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

// completionValues are the completions by their names in the struct tags of commands.
func completionValues() map[string]completion.Values {
	return map[string]completion.Values{packageArgument: installedPackages, kindArgument: packageKinds, "context": kubeconfigContexts}
}

// packageKinds returns the kinds of packages.
func packageKinds(context.Context, map[string]string) []string {
	var out []string
	for _, kind := range v1.PackageKinds() {
		out = append(out, strings.ToLower(kind))
	}
	return out
}

// installedPackages returns KIND/NAME of the packages of a cluster, with their references. It returns nothing if the
// cluster cannot be read: completion reports no errors.
func installedPackages(ctx context.Context, flags map[string]string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, err := connection.ClusterFlags{Kubeconfig: flags["kubeconfig"], Context: flags["context"]}.Client(ctx)
	if err != nil {
		return nil
	}
	all, err := inventory.LoadPackages(ctx, cluster)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range all.Packages {
		out = append(out, inventory.ShortName(p)+"\t"+terminal.Safe(p.PackageSpec().Package))
	}
	return out
}

func kubeconfigContexts(_ context.Context, flags map[string]string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = flags["kubeconfig"]
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
