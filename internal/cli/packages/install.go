// Package packages contains the commands that change the packages of a cluster: install,
// update, uninstall, autoremove, approve, plan, apply and list.
package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/packages/undomark"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Codes for installs.
var (
	ErrInstalledOtherwise = errcode.Code{
		Name: "AlreadyInstalled", Class: errcode.Conflict,
		Cause: "A package of that kind and name is installed from another reference, or the repository is installed already. Two packages from one repository contain the same objects.",
		Fix:   "To change the version of the installed package, use `xpkg update`. To install a package from another repository, use another name for it.",
	}
	ErrWait = errcode.Code{
		Name: "NotHealthyInTime", Class: errcode.Timeout,
		Cause: "The package, or a package that it requires, did not become healthy within the time of --wait.",
		Fix:   "The operation continues. Check it with `xpkg tree`, or wait longer with --wait.",
	}
)

// InstallCmd implements `xpkg install`.
type InstallCmd struct {
	installArgs
	Lock   string        `placeholder:"FILE" help:"Install all packages of this lock file at its digests."`
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the package is healthy."`
	DryRun bool          `help:"Show the changes without making them, like xpkg plan install."`
	atomicFlag
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	terminal.OutputFlag

	// planned is the plan of the install, or nil.
	planned *planner.Plan
}

// Run creates the object that installs a package, or the objects for a lock file.
func (c *InstallCmd) Run(env *terminal.Env) error {
	if c.Lock != "" {
		return c.runLock(env)
	}
	if c.DryRun {
		preview := planInstallCmd{c.installArgs, planOutput{ClusterFlags: c.ClusterFlags, planFlags: c.planFlags, planFormat: planFormat{string(c.Output)}, isDryRun: true}}
		return preview.Run(env)
	}
	installed, err := c.selectProvider(env, c.planFlags, c.ClusterFlags)
	if err != nil {
		return err
	}
	if installed != nil {
		return c.finishProvider(env, installed)
	}
	if err := c.determineKind(env, c.planFlags, c.ClusterFlags); err != nil {
		return err
	}
	p, err := c.object()
	if err != nil {
		return err
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	if err := c.review(env, p); err != nil {
		return err
	}
	allowed, adopted := p.GetAnnotations()[webhooks.AnnotationAllowed], p.GetAnnotations()[revision.AnnotationAdopt]
	limit := c.limit(c.Wait)
	if c.planned != nil {
		if err := keepNeeded(env.Context, cluster, c.planned); err != nil {
			return err
		}
	}
	created, err := c.create(env, undomark.New(cluster, limit > 0), p)
	if err != nil {
		return err
	}
	for key, consent := range map[string]string{webhooks.AnnotationAllowed: allowed, revision.AnnotationAdopt: adopted} {
		if created != nil || consent == "" {
			continue
		}
		if err := annotate(env.Context, cluster, p, key, func(v1.Package) string { return consent }); err != nil {
			return err
		}
	}
	if limit > 0 {
		if err := waitInstalled(env, cluster, p, limit, created); err != nil {
			return c.undo(env, cluster, c.planUndo, err, created)
		}
		keep(env, cluster, created)
	}
	return c.Print(env.Stdout, inventory.WithoutManagedFields(p), func(w io.Writer) error {
		word := "unchanged"
		if created != nil {
			word = "created"
		}
		if limit > 0 {
			word = outcomeOfWait(env, p)
		}
		_, err := fmt.Fprintf(w, "%s %s (%s)\n", inventory.ShortName(p), word, p.PackageSpec().Package)
		return err
	})
}

// planUndo plans the uninstall of the package that the command has installed.
func (c *InstallCmd) planUndo(ctx context.Context, undone *change) (out *planner.Plan, err error) {
	pl, err := c.open(ctx, c.ClusterFlags)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	return pl.planUndo(ctx, undone)
}

// finishProvider keeps a package that provides the kind of --kind already, and reports it.
func (c *InstallCmd) finishProvider(env *terminal.Env, p v1.Package) error {
	cluster, err := c.Client(env.Context)
	if err != nil {
		return err
	}
	if err := undomark.Remove(env.Context, cluster, p); err != nil {
		return err
	}
	return c.Print(env.Stdout, inventory.WithoutManagedFields(p), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s unchanged (%s): it provides %s already\n", inventory.ShortName(p), p.PackageSpec().Package, c.RequiredKind)
		return err
	})
}

// review plans the install, and fails with the error of the plan if the package can never be installed. On a
// terminal it shows the plan and asks for confirmation. It adds the user's consents to webhooks and to the
// adoption of objects to want. If this command has no access to the content of the package, the install
// continues without a plan, because the manager may have access.
func (c *InstallCmd) review(env *terminal.Env, want v1.Package) (err error) {
	pl, err := c.open(env.Context, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	live, err := c.findInstalled(env.Context, pl, want)
	if live != nil && !c.given() {
		return err // Only the label of a dependency is changed.
	}
	var p *planner.Plan
	if err == nil {
		p, err = planWith(env, "planning to install "+inventory.ShortName(want), func() (*planner.Plan, error) {
			pl.Upgrades = c.DependencyUpgrades
			return planInstall(env.Context, pl, want, live, c.consents)
		})
		err = c.adviseCache(err)
	}
	ask := c.Asks(env)
	switch {
	case c.Atomic && errors.Is(err, apply.ErrForbidden):
		// The command could not undo its change either.
		return errcode.From(err).WithDo("Have an administrator grant the permission, or repeat the command without --atomic: to undo an install, the command reads all packages.")
	case isPlanUnavailable(err, want) && !c.given():
		printPlanUnavailable(env, err)
		if c.cached {
			fmt.Fprintln(env.Stderr, terminal.Safe(errcode.From(err).Do))
		}
		if ask {
			return env.Confirm()
		}
		return nil
	case err != nil:
		return err
	case !p.WritesPackage():
		return nil
	}
	if err := p.RefusalError(); err != nil {
		return err
	}
	if err := consentError(p); err != nil && !c.Yes && !ask {
		return err
	}
	c.planned = p
	planned, err := p.Wanted()
	if err != nil {
		return err
	}
	for _, key := range []string{webhooks.AnnotationAllowed, revision.AnnotationAdopt, graph.AnnotationKindProviders} {
		if consent := planned.GetAnnotations()[key]; consent != "" {
			want.SetAnnotations(desired.Overlay(want.GetAnnotations(), map[string]string{key: consent}))
		}
	}
	if ask || c.given() && !terminal.IsQuiet(env.Stderr) {
		if err := showPlan(env, p); err != nil {
			return err
		}
	} else {
		printNotes(env, p)
	}
	if ask {
		return env.Confirm()
	}
	return nil
}

// create creates the package, and returns the change. It returns nil if the package exists already.
func (c *InstallCmd) create(env *terminal.Env, cluster client.Client, p v1.Package) (*change, error) {
	want := p.PackageSpec().Package
	kind := p.GetObjectKind().GroupVersionKind()
	err := cluster.Create(env.Context, p, client.FieldOwner(plan.FieldManager))
	p.GetObjectKind().SetGroupVersionKind(kind)
	if err == nil {
		return newChange(nil, p), nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, apiserver.Classify(err, "create %s", inventory.ShortName(p))
	}
	if err := cluster.Get(env.Context, client.ObjectKeyFromObject(p), p); err != nil {
		return nil, apiserver.Classify(err, "read %s", inventory.ShortName(p))
	}
	p.GetObjectKind().SetGroupVersionKind(kind)
	if err := installedOtherwise(p, want, ""); err != nil {
		return nil, err
	}
	if err := adopt(env, cluster, p); err != nil {
		return nil, err
	}
	_, err = repeat(env.Context, cluster, p)
	return nil, err
}

// adopt marks an automatically installed package as explicitly installed, so that it is kept when no package
// requires it. Another command does not label it as a dependency any more either.
func adopt(env *terminal.Env, cluster client.Client, p v1.Package) error {
	isChanged := false
	err := inventory.PatchMetadata(env.Context, cluster, p, func() (map[string]any, error) {
		if isChanged = graph.IsAutoInstalled(p) || graph.IsUnmarkedDependency(p); !isChanged {
			return nil, nil
		}
		return map[string]any{"labels": map[string]any{graph.LabelAutoInstalled: nil}, "annotations": map[string]any{graph.AnnotationRequiredBy: nil}}, nil
	})
	if err == nil && isChanged {
		fmt.Fprintf(env.Stderr, "note: %s was a dependency and is now installed explicitly; xpkg autoremove keeps it.\n", inventory.ShortName(p))
	}
	return err
}
