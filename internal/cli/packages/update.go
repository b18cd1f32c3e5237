package packages

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
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
	consents
	foreseenUpgradesFlag

	// Name and Ref are the only package of an update, and its target version.
	Name inventory.Name `kong:"-"`
	Ref  string         `kong:"-"`
	// RollsBack reports whether the target version is a former revision.
	RollsBack bool `kong:"-"`
}

// step returns the change of the installed package that the arguments describe.
func (c *updateArgs) step(ctx context.Context, cluster client.Client) (*operation.Step, error) {
	all, err := inventory.LoadPackages(ctx, cluster)
	if err != nil {
		return nil, err
	}
	p, err := all.Find(c.Name)
	if err == nil {
		err = inventory.CheckNotDeleting(p)
	}
	if err != nil {
		return nil, err
	}
	s := &operation.Step{Live: p, Want: p.DeepCopyObject().(v1.Package), RollsBack: c.RollsBack}
	return s, c.change(s.Want)
}

// plan returns the step with its plan.
func (c *updateArgs) plan(ctx context.Context, pl *clusterPlanner) (*operation.Step, error) {
	s, err := c.step(ctx, pl.Client)
	if err != nil {
		return nil, err
	}
	c.assume(pl)
	pl.ShowMaintained = true
	if s.Plan, err = pl.Install(ctx, s.Want, pl.Options); err != nil {
		return nil, operation.PlanError(err, c.verb()+" "+inventory.ShortName(s.Live))
	}
	s.Plan.RollsBack = c.RollsBack
	return s, operation.CheckRead(s.Plan, s.Live)
}

// verb returns the operation as the user named it.
func (c *updateArgs) verb() string {
	return (&planner.Plan{Operation: planner.Update, RollsBack: c.RollsBack}).Verb()
}

// change applies the arguments to a package.
func (c *updateArgs) change(p v1.Package) error {
	if c.Ref != "" && c.Version != "" {
		return terminal.ErrUsage.New(nil, "%s and --version %s cannot be used together", c.Ref, c.Version)
	}
	if err := moveTo(p, cmp.Or(c.Ref, c.Version)); err != nil {
		return err
	}
	return c.configure(p)
}

// moveTo sets the version of a package: a tag, a digest or a full reference. Empty keeps the version, and so does the tag of a package
// whose reference has the digest too.
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
	return nil
}

// changesPackage reports whether the arguments contain a change of a package.
func (c *updateArgs) changesPackage() bool {
	return c.Ref != "" || c.Version != "" || c.configures()
}

// configures reports whether the arguments change other fields than the version.
func (c *updateArgs) configures() bool {
	return c.ManualActivation != nil || c.RevisionHistoryLimit != nil || c.PackagePullSecrets != nil ||
		c.PackagePullPolicy != "" || c.RuntimeConfig != "" || c.SkipDependencyResolution != nil
}

// selectVersion selects the newest compatible version, if the arguments contain no change of the package.
func (c *updateArgs) selectVersion(env *terminal.Env, f planFlags, cluster connection.ClusterFlags) (err error) {
	if c.changesPackage() || c.given() {
		return nil
	}
	client, all, err := selection.Read(env.Context, cluster, inventory.LoadNamed)
	if err != nil {
		return err
	}
	p, err := all.Find(c.Name)
	if err != nil {
		return err
	}
	finder, closer, err := dependencies.OpenFinder(env, f.ContentFlags, client, f.Namespace, all)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, closer)
	newest, notes, err := finder.NewestCompatible(env.Context, all, p)
	if err != nil {
		return err
	}
	view.Notes(env.Stderr, notes...)
	c.Version = newest
	return nil
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
			WithDo("Write the version after the name, as in `xpkg update %s@%s`, or the full reference.", wording.ShellWord(name), wording.ShellWord(tag))
	}
	ref, err := oci.ParseReference(present, oci.ParseOptions{})
	if err != nil {
		return "", terminal.ErrUsage.New(err, "cannot determine the repository of %s", present).WithDo("Specify the full reference.")
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

	// save writes and prints the plans of a dry run. It can be nil.
	save *planOutput
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
	if c.All {
		return c.runAll(env)
	}
	if err := c.selectPackages(env); err != nil {
		return err
	}
	targets, err := c.targets(env, c.ClusterFlags)
	switch {
	case c.Install && errors.Is(err, inventory.ErrPackageNotFound):
		return c.install(env, err)
	case err != nil:
		return err
	case len(targets) > 1:
		return c.runSeveral(env, targets)
	}
	c.Name, c.Ref = targets[0].Name, targets[0].Ref
	return c.runOne(env)
}

// selectPackages replaces a selector by the names of the selected packages.
func (c *UpdateCmd) selectPackages(env *terminal.Env) error {
	names, err := c.SelectorFlag.Names(env.Context, c.ClusterFlags, nil)
	for _, name := range names {
		c.Packages = append(c.Packages, string(name))
	}
	return err
}

// runOne changes an installed package.
func (c *UpdateCmd) runOne(env *terminal.Env) (err error) {
	if err := c.selectVersion(env, c.planFlags, c.ClusterFlags); err != nil {
		return err
	}
	if c.DryRun {
		plan := planUpdateCmd{updateArgs: c.updateArgs, planOutput: planOutput{ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, planFormat: planFormat{string(c.Output)}, isDryRun: true}}
		return plan.run(env)
	}
	pl, err := c.open(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	s, err := interruptible(env, "planning to "+c.verb()+" "+string(c.Name), func() (*operation.Step, error) { return c.plan(env.Context, pl) })
	if operation.IsPlanUnavailable(err, nil) {
		pl.PlanUnavailable(err)
		if err := c.Consent(env, c.verb()+" "+string(c.Name)+" without a plan"); err != nil {
			return err
		}
		s, err = c.step(env.Context, pl.Client)
	} else if err == nil {
		err = c.review(env, pl, s)
	}
	if err != nil {
		return err
	}
	return carryOutOne(env, operation.Operation{Engine: pl.Engine, Wait: c.limit(c.Wait), Atomic: c.Atomic}, c.OutputFlag, s, "")
}

// review shows the plan of a step, and asks for confirmation.
func (c *UpdateCmd) review(env *terminal.Env, pl *clusterPlanner, s *operation.Step) error {
	p := s.Plan
	if err := p.RefusalError(); err != nil {
		if errors.Is(err, planner.ErrMaintained) {
			plantext.Write(env.Stderr, p)
		}
		return err
	}
	if !p.WritesPackage() {
		s.Same = true
		live, err := inventory.Get(env.Context, pl.Client, p.Package.Kind, p.Package.Name)
		if err == nil {
			err = planner.MovedError(p, p.CheckPackage(live))
		}
		s.Live = live
		return err
	}
	if c.Asks(env) || !terminal.IsQuiet(env.Stderr) {
		plantext.Write(env.Stderr, p)
	}
	return consentTo(c.ConsentFlag, env, p, c.verb()+" "+string(c.Name))
}
