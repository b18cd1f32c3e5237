package packages

import (
	"cmp"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// updateArgs selects the changes to an installed package.
type updateArgs struct {
	Packages []string `arg:"" optional:"" name:"package" complete:"package-or-version" help:"Packages to update, each as NAME, KIND/NAME or KIND NAME, or as a reference, which selects the package of its repository. @VERSION after a name, or the only argument after a single name, is the target version: a tag such as v1.2.0, a digest, or a full reference. Without it and without a flag that changes the package, the newest compatible version."`
	Version  string   `placeholder:"TAG" complete:"version" help:"Tag to update a single package to; the same as a tag after its name."`

	ManualActivation         *bool    `short:"m" negatable:"" help:"Require manual activation of new revisions; --no-manual-activation activates them automatically."`
	RevisionHistoryLimit     *int64   `short:"r" placeholder:"N" help:"Number of inactive revisions to keep. 0 keeps all."`
	PackagePullSecrets       []string `placeholder:"NAME" help:"Secrets with credentials for the registry, which replace the current ones."`
	PackagePullPolicy        string   `enum:",IfNotPresent,Always,Never" default:"" placeholder:"POLICY" help:"When content is downloaded: IfNotPresent, Always or Never."`
	RuntimeConfig            string   `placeholder:"NAME" help:"DeploymentRuntimeConfig of the package's runtime."`
	SkipDependencyResolution *bool    `negatable:"" help:"Install without dependencies; --no-skip-dependency-resolution installs them again."`
	kindsFlag
	consents
	foreseenUpgradesFlag
}

// update updates the targets, dependencies first.
func (c *updateArgs) update(env *terminal.Env, r review, f planFlags, targets []inventory.Target) error {
	r.one, r.consents, r.verb = len(targets) == 1, c.consents, string(planner.Update)
	r.needsPlan = !r.one || c.given() || r.save != nil
	if !r.one && c.Version != "" {
		return terminal.ErrUsage.New(nil, "--version cannot be used with several packages").
			WithDo("Write the version after each package, such as `xpkg update %s@%s`.", targets[0].Name, c.Version)
	}
	return r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		pl.assume(c.foreseenUpgradesFlag, c.consents)
		if !r.one {
			return c.steps(env, pl, f, all, targets)
		}
		s, err := c.step(env, pl, f, all, targets[0])
		return []*operation.Step{s}, err
	})
}

// step returns the update of one package: to the newest compatible version, if the arguments contain no change of it.
func (c *updateArgs) step(
	env *terminal.Env, pl *clusterPlanner, f planFlags, all *inventory.Inventory, target inventory.Target,
) (*operation.Step, error) {
	p, err := all.Find(target.Name)
	if err == nil {
		err = inventory.CheckNotDeleting(p)
	}
	if err != nil {
		return nil, err
	}
	if target.Ref != "" && c.Version != "" {
		return nil, terminal.ErrUsage.New(nil, "%s and --version %s cannot be used together", target.Ref, c.Version)
	}
	to := cmp.Or(target.Ref, c.Version)
	if to == "" && !c.configures() && !c.given() {
		if to, err = newestCompatible(env, pl, f, all, p); err != nil {
			return nil, err
		}
	}
	s := &operation.Step{Live: p, Want: p.DeepCopyObject().(v1.Package)}
	if err := moveTo(s.Want, to); err != nil {
		return nil, err
	}
	return s, c.configure(s.Want)
}

// newestCompatible returns the newest version of a package that is compatible with the others, and prints notes about
// newer ones.
func newestCompatible(
	env *terminal.Env, pl *clusterPlanner, f planFlags, all *inventory.Inventory, p v1.Package,
) (newest string, err error) {
	finder, closer, err := dependencies.OpenFinder(env, f.ContentFlags, pl.Client, f.Namespace, all)
	if err != nil {
		return "", err
	}
	defer terminal.Close(&err, closer)
	newest, notes, err := finder.NewestCompatible(env.Context, all, p)
	view.Notes(env.Stderr, notes...)
	return newest, err
}

// moveTo sets the version of a package: a tag, a digest or a full reference. Empty keeps the version, and so does the
// tag of a package whose reference has the digest too.
func moveTo(p v1.Package, to string) error {
	switch {
	case to == "":
		return nil
	case location.IsPackageFile(to):
		return isFile(to, inventory.RepositoryOf(p)+":v0.2.0", "update "+inventory.ShortName(p))
	}
	image, err := updateTo(p.PackageSpec().Package, to)
	if err == nil && !satisfies(p.PackageSpec().Package, image) {
		p.PackageSpec().Package = image
	}
	return err
}

// satisfies reports whether a reference is what another one requests.
func satisfies(reference, request string) bool {
	is, errIs := oci.ParseReference(reference, oci.ParseOptions{})
	asked, errAsked := oci.ParseReference(request, oci.ParseOptions{})
	return errIs == nil && errAsked == nil && is.Satisfies(asked)
}

// configure applies the flags that change other fields than the version to a package.
func (c *updateArgs) configure(p v1.Package) error {
	spec := p.PackageSpec()
	if c.ManualActivation != nil {
		spec.RevisionActivationPolicy = v1.AutomaticActivation
		if *c.ManualActivation {
			spec.RevisionActivationPolicy = v1.ManualActivation
		}
	}
	spec.RevisionHistoryLimit = cmp.Or(c.RevisionHistoryLimit, spec.RevisionHistoryLimit)
	if c.PackagePullSecrets != nil {
		spec.PackagePullSecrets = secretRefs(c.PackagePullSecrets)
	}
	spec.PackagePullPolicy = cmp.Or(corev1.PullPolicy(c.PackagePullPolicy), spec.PackagePullPolicy)
	if c.SkipDependencyResolution != nil {
		spec.SkipDependencyResolution = *c.SkipDependencyResolution
	}
	if c.RuntimeConfig != "" {
		r := p.RuntimeSpec()
		if r == nil {
			return terminal.ErrUsage.New(nil, "%s has no runtime, so --runtime-config cannot be used", inventory.ShortName(p))
		}
		r.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: c.RuntimeConfig}
	}
	return c.choose(p)
}

// configures reports whether the arguments change other fields than the version.
func (c *updateArgs) configures() bool {
	return c.ManualActivation != nil || c.RevisionHistoryLimit != nil || c.PackagePullSecrets != nil ||
		c.PackagePullPolicy != "" || c.RuntimeConfig != "" || c.SkipDependencyResolution != nil || c.KindsOf != nil
}

// updateTo returns the new spec.package: a full reference, or a tag or digest in the current repository.
// A name in the package cache has no repository and is replaced by another name.
func updateTo(present, to string) (string, error) {
	if strings.Contains(to, "/") {
		ref, err := flags.ParseReference(to)
		return ref.String(), err
	}
	if isCacheName(present) {
		return to, nil
	}
	if name, tag, ok := strings.Cut(to, ":"); ok && name != "sha256" && !strings.Contains(name, "@") {
		return "", terminal.ErrUsage.New(nil, "%s is neither a version nor a reference with a registry", to).
			WithDo(
				"Write the version after the name, as in `xpkg update %s@%s`, or the full reference.", wording.ShellWord(name),
				wording.ShellWord(tag),
			)
	}
	ref, err := oci.ParseReference(present, oci.ParseOptions{})
	if err != nil {
		return "",
			terminal.ErrUsage.New(err, "cannot determine the repository of %s", present).WithDo("Specify the full reference.")
	}
	separator := ":"
	if strings.HasPrefix(to, "sha256:") {
		separator = "@"
	}
	ref, err = flags.ParseReference(ref.Name() + separator + to)
	return ref.String(), err
}

// UpdateCmd implements `xpkg update`.
type UpdateCmd struct {
	updateArgs
	All     bool          `help:"Update every package that a user installed to the newest version that is compatible with all others, with one plan. Nothing changes if one update is refused."`
	Install bool          `short:"i" help:"Install the package if it is not installed. It must be named by a reference."`
	Wait    time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the packages are healthy."`
	DryRun  bool          `help:"Show the changes without making them, like xpkg plan update."`
	selection.SelectorFlag
	atomicFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// errNoName is the error of an update without a package.
var errNoName = errors.New("no package is given")

// Validate returns an error if no package is given.
func (c *UpdateCmd) Validate() error {
	switch {
	case c.Selector != "" && (c.All || c.Install):
		return errors.New("--selector cannot be used with --all or --install")
	case c.Selector == "" && c.All:
		return nil
	case c.Selector == "" && len(c.Packages) == 0:
		return errNoName
	}
	return c.Check(len(c.Packages))
}

// Run changes installed packages.
func (c *UpdateCmd) Run(env *terminal.Env) error {
	r := review{
		dryRun: c.DryRun, wait: c.Wait, atomicFlag: c.atomicFlag, ConsentFlag: c.ConsentFlag, ClusterFlags: c.ClusterFlags,
		OutputFlag: c.OutputFlag,
	}
	if c.All {
		return c.updateAll(env, r, c.planFlags)
	}
	names, err := c.SelectorFlag.Names(env.Context, c.ClusterFlags, nil)
	if err != nil {
		return err
	}
	for _, name := range names {
		c.Packages = append(c.Packages, string(name))
	}
	targets, err := c.targets(env, c.ClusterFlags)
	if c.Install && errors.Is(err, inventory.ErrPackageNotFound) {
		if missing := c.missing(); missing != nil {
			return missing.install(env, r, c.planFlags)
		}
	}
	if err != nil {
		return err
	}
	return c.update(env, r, c.planFlags, targets)
}
