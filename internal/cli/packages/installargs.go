package packages

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// installArgs select the package to install and its settings.
type installArgs struct {
	Kind inventory.Kind `arg:"" optional:"" complete:"kind-or-reference" help:"Kind of package: provider, configuration or function. Default is the kind of the content."`
	Ref  string         `arg:"" optional:"" complete:"reference" help:"Package to install, for example xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0."`
	Name string         `arg:"" optional:"" help:"Name of the package in the cluster. Default is derived from the repository."`

	ManualActivation         bool     `short:"m" help:"Require manual activation of new revisions."`
	RevisionHistoryLimit     *int64   `short:"r" placeholder:"N" help:"Number of inactive revisions to keep. 0 keeps all."`
	PackagePullSecrets       []string `placeholder:"NAME" help:"Secrets with credentials for the registry."`
	PackagePullPolicy        string   `enum:",IfNotPresent,Always,Never" default:"" placeholder:"POLICY" help:"When content is downloaded: IfNotPresent, Always or Never."`
	RuntimeConfig            string   `placeholder:"NAME" help:"DeploymentRuntimeConfig of the package's runtime."`
	SkipDependencyResolution bool     `help:"Install without dependencies."`
	requiredKindFlag
	kindsFlag
	consents
	foreseenUpgradesFlag
}

// foreseenUpgradesFlag is the upgrade policy that a plan assumes if the manager does not announce one.
type foreseenUpgradesFlag struct {
	DependencyUpgrades graph.Policy `enum:",None,Upgrade,UpgradeOrDowngrade" default:"" placeholder:"POLICY" help:"Dependency upgrade policy to assume when planning: None, Upgrade or UpgradeOrDowngrade. Default is the policy of the package manager."`
}

// object returns the package that the arguments describe: a Provider if they have no kind.
func (c *installArgs) object() (v1.Package, error) {
	if err := c.needsPackage(); err != nil {
		return nil, err
	}
	const separators = "/:@" // A name contains none of them, and a reference one.
	if strings.ContainsAny(c.Name, separators) && strings.ContainsAny(c.Ref, separators) {
		kind := ""
		if c.Kind != "" {
			kind = strings.ToLower(string(c.Kind)) + " "
		}
		return nil,
			terminal.ErrUsage.New(nil, "%s and %s are two references, and a package is installed from one", c.Ref, c.Name).
				WithDo(
					"Install each with a command of its own: `xpkg install %s%s`, then `xpkg install %s%s`.", kind,
					wording.ShellWord(c.Ref), kind, wording.ShellWord(c.Name),
				)
	}
	if strings.ContainsAny(c.Name, separators) {
		kind := strings.ToLower(cmp.Or(string(c.Kind), v1.ProviderKind))
		return nil, terminal.ErrUsage.New(nil, "%s is a reference, and not a name", c.Name).
			WithDo(
				"Write the reference before the name: `xpkg install %s %s %s`.", kind, wording.ShellWord(c.Name),
				wording.ShellWord(c.Ref),
			)
	}
	image, repository, err := c.image()
	if err != nil {
		return nil, err
	}
	name := cmp.Or(c.Name, oci.ToDNSLabel(repository))
	if err := selection.CheckNewName(name); err != nil {
		return nil, err
	}
	p := v1.NewPackage(cmp.Or(string(c.Kind), v1.ProviderKind))
	p.SetName(name)
	p.PackageSpec().Package = image
	c.configure(p)
	c.recordKind(p)
	return p, c.choose(p)
}

// install installs the package.
func (c *installArgs) install(env *terminal.Env, r review, f planFlags) error {
	r.one, r.isNew, r.consents = true, r.save == nil, c.consents
	r.needsPlan = c.given() || c.KindsOf != nil || r.save != nil
	if c.RequiredKind == "" {
		if _, err := c.object(); err != nil {
			return err
		}
	}
	return r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		s, err := c.step(env, pl, all, r.dryRun)
		return []*operation.Step{s}, err
	})
}

// step returns the install. The only change of a package that is installed already is that it is no dependency, and
// that it gets the consents of the user.
func (c *installArgs) step(
	env *terminal.Env, pl *clusterPlanner, all *inventory.Inventory, isDryRun bool,
) (*operation.Step, error) {
	provider, err := c.selectProvider(env, pl, all)
	if err != nil {
		return nil, err
	}
	if provider != nil {
		fmt.Fprintf(env.Stderr, "note: %s provides %s already\n", inventory.ShortName(provider), c.RequiredKind)
		return &operation.Step{Live: provider, Same: true}, nil
	}
	c.expandName(env, pl)
	if err := c.determineKind(env, pl); err != nil {
		return nil, err
	}
	want, err := c.object()
	if err != nil {
		return nil, err
	}
	live, err := c.findInstalled(all, want)
	if err != nil {
		return nil, err
	}
	pl.assume(c.foreseenUpgradesFlag, c.consents)
	if live != nil {
		want = live.DeepCopyObject().(v1.Package)
		graph.Adopt(want)
		if err := c.choose(want); err != nil {
			return nil, err
		}
	}
	pl.Provides = provide.KindsIn(want.GetAnnotations()[graph.AnnotationProvides])
	return &operation.Step{
		Live: live, Want: want, Adopt: true, Same: live != nil && !c.given() && c.KindsOf == nil && !isDryRun,
	}, nil
}

// expandName adds the registry to a reference without one, if the indexes know exactly one package with its path.
// Otherwise, it is in the default registry.
func (c *installArgs) expandName(env *terminal.Env, pl *clusterPlanner) {
	_, full := oci.ParseReference(c.Ref, oci.ParseOptions{AllowUntagged: true})
	ref, err := flags.ParseReference(c.Ref)
	if full == nil || err != nil || c.PackagePullPolicy == string(corev1.PullNever) {
		return
	}
	// A name that no index can be asked for is as good as one that no index has.
	if known, err := pl.Kinds.Named(env.Context, ref.Repository); err == nil && len(known) == 1 {
		c.Ref = known[0] + strings.TrimPrefix(ref.String(), ref.Name())
		fmt.Fprintf(
			env.Stderr, "note: %s\n", terminal.Safe("the package is "+c.Ref+", the only one with this path in the indexes"),
		)
	}
}

// determineKind sets the kind from the content of the package, if the command line has none.
func (c *installArgs) determineKind(env *terminal.Env, pl *clusterPlanner) error {
	if c.Kind != "" || c.Ref == "" {
		return nil
	}
	p, err := c.object()
	if err != nil {
		return err
	}
	progress := terminal.NewProgress(env.Stderr)
	defer progress.End()
	progress.Set("reading %s", c.Ref)
	content, err := pl.Content(env.Context, p)
	if err = operation.PlanError(err, "install "+c.Ref); operation.IsPlanUnavailable(err, p) &&
		!errors.Is(err, apply.ErrForbidden) {
		failed := errcode.From(err)
		return failed.Also(
			"Or write the kind before the reference, so that only the manager reads the package, as in `xpkg install provider %s`.",
			strings.TrimSpace(wording.ShellWord(c.Ref)+" "+c.Name),
		)
	}
	if err != nil {
		return err
	}
	c.Kind = inventory.Kind(content.Meta.Kind)
	return nil
}

// image returns spec.package: a reference, or a name in the package cache if the pull policy is Never
// (packages guide, "Pre-Populating the Package Cache").
func (c *installArgs) image() (image, repository string, err error) {
	if c.PackagePullPolicy == string(corev1.PullNever) && isCacheName(c.Ref) {
		return c.Ref, c.Ref, nil
	}
	if location.IsPackageFile(c.Ref) {
		return "", "", isFile(c.Ref, cmp.Or(flags.LocalRegistry(), exampleRegistry)+"/"+cmp.Or(c.Name, fileLabel(c.Ref))+
			":v0.1.0", "install")
	}
	ref, err := flags.ParseReference(c.Ref)
	return ref.String(), ref.Repository, err
}

// exampleRegistry stands for the registry of the user in commands.
const exampleRegistry = "registry.example.com"

// fileLabel returns the name of a file without its folder and extension, for use as the name of a repository.
func fileLabel(path string) string {
	return oci.ToDNSLabel(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

// isFile returns the error for a file in place of a reference, with the commands that publish the file as ref
// and install it.
func isFile(path, ref, command string) error {
	return terminal.ErrUsage.New(nil, "%s is a file, but packages are installed from registries", path).
		WithDo("Publish it with `xpkg push -f %s %s`, and run `xpkg %s %s`.", wording.ShellWord(path), ref, command, ref)
}

// isCacheName reports whether a package is a name in the package cache and not a reference.
func isCacheName(image string) bool { return !strings.ContainsAny(image, "/:@") }

// configure applies the settings of the arguments to a package.
func (c *installArgs) configure(p v1.Package) {
	spec := p.PackageSpec()
	spec.PackagePullPolicy = corev1.PullPolicy(c.PackagePullPolicy)
	spec.RevisionHistoryLimit = c.RevisionHistoryLimit
	spec.SkipDependencyResolution = c.SkipDependencyResolution
	if c.ManualActivation {
		spec.RevisionActivationPolicy = v1.ManualActivation
	}
	spec.PackagePullSecrets = secretRefs(c.PackagePullSecrets)
	if r := p.RuntimeSpec(); r != nil && c.RuntimeConfig != "" {
		r.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: c.RuntimeConfig}
	}
}

func secretRefs(names []string) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	for _, s := range names {
		out = append(out, corev1.LocalObjectReference{Name: s})
	}
	return out
}

// findInstalled returns the package that is installed from the reference of want, or nil. It gives want the name of a
// package that is installed from its repository, unless the command line names another one: two packages from one
// repository contain the same objects. It fails if another version or a package with another name is installed, or if
// the package is being deleted.
func (c *installArgs) findInstalled(all *inventory.Inventory, want v1.Package) (v1.Package, error) {
	live, asked, orElse := all.InstalledFrom(want), want.PackageSpec().Package, ""
	switch {
	case live == nil:
		live, orElse = all.Named(want), ", or install both by adding another name"
	case c.Name == "":
		want.SetName(live.GetName())
	}
	if live == nil {
		return nil, nil
	}
	if err := operation.InstalledOtherwise(live, asked, orElse); err != nil || live.GetName() == want.GetName() {
		return live, err
	}
	return nil, operation.ErrInstalledOtherwise.New(
		nil, "%s is installed from %s already, and a second package cannot have the same objects", inventory.ShortName(live),
		live.PackageSpec().Package,
	).
		WithDo("Use %s, which `xpkg describe %s` shows.", inventory.ShortName(live), inventory.ShortName(live))
}

// needsPackage returns an error if no package is given.
func (c *installArgs) needsPackage() error {
	if c.Ref == "" {
		return terminal.ErrUsage.New(nil, "no package is given").WithDo(
			"Add the reference, for example `xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0`, or a lock file with --lock.",
		)
	}
	return nil
}
