package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/packages/undomark"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
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

// wanted returns the installed package with the changes of the arguments.
func (c *updateArgs) wanted(ctx context.Context, cluster client.Client) (v1.Package, error) {
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
	return p, c.change(p)
}

// plan plans the update.
func (c *updateArgs) plan(ctx context.Context, pl *clusterPlanner) (*planner.Plan, error) {
	p, err := c.wanted(ctx, pl.client)
	if err != nil {
		return nil, err
	}
	c.assume(pl)
	pl.ShowMaintained = true
	out, err := pl.Install(ctx, p)
	if err != nil {
		return nil, planError(err, c.verb()+" "+inventory.ShortName(p))
	}
	out.RollsBack = c.RollsBack
	return out, checkRead(out, p)
}

// verb returns the operation as the user named it.
func (c *updateArgs) verb() string {
	return (&planner.Plan{Operation: planner.Update, RollsBack: c.RollsBack}).Verb()
}

// outcome returns the word for a package that was written.
func (c *updateArgs) outcome() string {
	if c.RollsBack {
		return "rolled back"
	}
	return "updated"
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
func (c *updateArgs) selectVersion(env *terminal.Env, f planFlags, cluster connection.ClusterFlags) error {
	if c.changesPackage() || c.given() {
		return nil
	}
	_, all, err := selection.Read(env.Context, cluster, inventory.LoadPackages)
	if err != nil {
		return err
	}
	p, err := all.Find(c.Name)
	if err != nil {
		return err
	}
	versions := dependencies.OutdatedCmd{Namespace: f.Namespace, ClusterFlags: cluster}
	versions.ContentFlags = f.ContentFlags
	newest, notes, err := versions.NewestCompatible(env, p)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(note))
	}
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
	terminal.OutputFlag
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
	pl, err := c.open(env.Context, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	p, err := planWith(env, "planning to "+c.verb()+" "+string(c.Name), func() (*planner.Plan, error) { return c.plan(env.Context, pl) })
	if isPlanUnavailable(err, nil) {
		return c.updateWithoutPlan(env, pl, err)
	}
	if err != nil {
		return err
	}
	if err := p.RefusalError(); err != nil {
		if errors.Is(err, planner.ErrMaintained) {
			err = cmp.Or(showPlan(env, p), err)
		}
		return err
	}
	if !p.WritesPackage() {
		live, err := inventory.Get(env.Context, pl.client, p.Package.Kind, p.Package.Name)
		if err == nil {
			err = planner.MovedError(p, p.CheckPackage(live))
		}
		word := ""
		if err == nil {
			word, err = repeat(env.Context, pl.client, live)
		}
		if err != nil {
			return err
		}
		return c.finish(env, pl, live, live, word)
	}
	if c.Asks(env) || !terminal.IsQuiet(env.Stderr) {
		if err := showPlan(env, p); err != nil {
			return err
		}
	}
	if err := consentTo(c.ConsentFlag, env, p, c.verb()+" "+string(c.Name)); err != nil {
		return err
	}
	before, done, err := carryOut(env.Context, undomark.New(pl.client, c.Atomic), p)
	if err != nil {
		return err
	}
	return c.finish(env, pl, before, done, c.outcome())
}

// updateWithoutPlan updates without a plan, for a command without access to the content.
func (c *UpdateCmd) updateWithoutPlan(env *terminal.Env, pl *clusterPlanner, why error) error {
	printPlanUnavailable(env, why)
	if err := c.Consent(env, c.verb()+" "+string(c.Name)+" without a plan"); err != nil {
		return err
	}
	p, err := c.wanted(env.Context, pl.client)
	if err != nil {
		return err
	}
	before, err := inventory.Get(env.Context, pl.client, p.PackageKind(), p.GetName())
	if err != nil {
		return err
	}
	revision.RecordVersion(p, before.PackageSpec().Package, c.RollsBack)
	kind := p.GetObjectKind().GroupVersionKind()
	err = undomark.New(pl.client, c.Atomic).Update(env.Context, p, client.FieldOwner(plan.FieldManager))
	p.GetObjectKind().SetGroupVersionKind(kind)
	if err != nil {
		return apiserver.Classify(err, "%s %s", c.verb(), inventory.ShortName(p))
	}
	return c.finish(env, pl, before, p, c.outcome())
}

// finish waits for a package if requested, and prints it. Before is the package before the update, or p if nothing is changed.
func (c *UpdateCmd) finish(env *terminal.Env, pl *clusterPlanner, before, p v1.Package, word string) error {
	if limit := c.limit(c.Wait); limit > 0 {
		var written *change
		if before != p {
			written = newChange(before, p)
		}
		if err := waitInstalled(env, pl.client, p, limit, nil); err != nil {
			return c.undo(env, pl.client, pl.planUndo, err, written)
		}
		keep(env, pl.client, written)
		word = outcomeOfWait(env, p)
	}
	return c.Print(env.Stdout, inventory.WithoutManagedFields(p), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s %s (%s)\n", inventory.ShortName(p), word, p.PackageSpec().Package)
		return err
	})
}
