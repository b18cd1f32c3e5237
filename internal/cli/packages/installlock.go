package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// runLock installs the packages of a lock file in dependency order, so that each can become healthy.
func (c *InstallCmd) runLock(env *terminal.Env) (err error) {
	if c.Kind != "" || c.Ref != "" {
		return terminal.ErrUsage.New(nil, "a package and --lock cannot be used together").WithDo("Remove one of them.")
	}
	if c.AllowWebhooks {
		return terminal.ErrUsage.New(nil, "--allow-webhooks cannot be used with --lock").WithDo("Install the lock file without it, and allow the webhooks of a package that waits with `xpkg approve`.")
	}
	f, err := dependencies.ReadClosure(env, c.Lock)
	if err != nil {
		return err
	}
	pl, err := c.open(env.Context, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	steps, err := c.steps(env.Context, pl.client, f)
	if err != nil {
		return err
	}
	c.warnOfTags(env, pl, steps)
	if err := c.planSteps(env, pl, steps); err != nil {
		return err
	}
	if c.DryRun {
		return c.previewSteps(env, steps)
	}
	if err := c.consentSteps(env, steps); err != nil {
		return err
	}
	return c.carryOutSteps(env, pl.client, steps)
}

const (
	tagsAtOnce = 8
	// tagLimit bounds the time in which tags are checked. The digests decide what is installed.
	tagLimit = 10 * time.Second
)

// warnOfTags prints a note for each package to install whose tag does not refer to the locked digest. A registry that
// does not respond is not reported here.
func (c *InstallCmd) warnOfTags(env *terminal.Env, pl *clusterPlanner, steps []*step) {
	ctx, cancel := context.WithTimeout(env.Context, tagLimit)
	defer cancel()
	finder := origin.Finder{Reader: pl.client, Namespace: pl.Namespace}
	notes := make([]string, len(steps))
	var group errgroup.Group
	group.SetLimit(tagsAtOnce)
	for i, s := range steps {
		spec := s.want.PackageSpec()
		if s.same || !revision.MayPull(spec.PackagePullPolicy) {
			continue
		}
		group.Go(func() error {
			err := dependencies.CheckTag(ctx, pl.source, func(ctx context.Context, ref oci.Reference) (fetch.Origin, error) {
				o, _, err := finder.Locate(ctx, ref.String(), spec.PackagePullSecrets, spec.PackagePullPolicy)
				return o, err
			}, s.locked)
			if errors.Is(err, dependencies.ErrLockTag) {
				notes[i] = errcode.From(err).What
			}
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
	for _, note := range notes {
		if note != "" {
			fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(note))
		}
	}
}

// planSteps plans every step on top of the previous ones. It fails if a step is not possible or the file contradicts
// the content.
func (c *InstallCmd) planSteps(env *terminal.Env, pl *clusterPlanner, steps []*step) error {
	progress := terminal.NewProgress(env.Stderr)
	defer progress.End()
	foreseen := &overlayReader{Reader: pl.Reader}
	pl.Reader, pl.ChangedTogether = foreseen, map[string]bool{}
	for _, s := range steps {
		pl.ChangedTogether[inventory.ShortName(s.want)] = !s.same
	}
	for _, s := range steps {
		if s.same {
			continue
		}
		progress.Set("planning to install %s from %s", inventory.ShortName(s.want), s.locked.Reference())
		p, err := pl.Install(env.Context, s.want)
		if err = planError(err, "install "+inventory.ShortName(s.want)); isPlanUnavailable(err, s.want) {
			progress.End()
			printPlanUnavailable(env, err)
			return nil
		}
		if err == nil {
			err = p.RefusalError()
		}
		if err == nil && !c.Yes && !c.DryRun && !env.Interactive() {
			err = p.BreakageError()
		}
		if err == nil {
			err = truthful(s, p)
		}
		if err != nil {
			return err
		}
		s.plan = p
		foreseen.packages = append(foreseen.packages, s.want)
	}
	return nil
}

// truthful compares the file with the dependencies of the content in the plan.
func truthful(s *step, p *planner.Plan) error {
	if s.want.PackageSpec().SkipDependencyResolution {
		return nil // The plan does not contain the dependencies.
	}
	var needs []dependency.Dependency
	for _, d := range p.Dependencies {
		needs = append(needs, dependency.Dependency{Package: d.Package, Constraint: d.Constraint, Optional: d.Optional})
	}
	return s.locked.Matches(s.locked.Kind, needs)
}

// previewSteps prints the plans, and ends with the exit code for pending changes.
func (c *InstallCmd) previewSteps(env *terminal.Env, steps []*step) error {
	plans := []*planner.Plan{}
	for _, s := range steps {
		if s.plan != nil {
			plans = append(plans, s.plan)
		}
	}
	err := c.Print(env.Stdout, plans, func(w io.Writer) error { return writePlans(w, plans) })
	if err == nil && len(plans) > 0 {
		return changesPending
	}
	return err
}

func writePlans(w io.Writer, plans []*planner.Plan) error {
	if len(plans) == 0 {
		_, err := io.WriteString(w, "Nothing to do.\n")
		return err
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := writePlan(w, p); err != nil {
			return err
		}
	}
	return nil
}

// consentSteps shows the plans and asks for confirmation, as the installation of one package does. Installed packages
// change only after consent.
func (c *InstallCmd) consentSteps(env *terminal.Env, steps []*step) error {
	changes, updates := 0, 0
	var plans []*planner.Plan
	for _, s := range steps {
		if s.same {
			continue
		}
		changes++
		if s.live != nil {
			updates++
		}
		if s.plan != nil {
			plans = append(plans, s.plan)
		}
	}
	switch {
	case c.Yes || changes == 0:
		return nil
	case env.Interactive():
		if err := writePlans(env.Stderr, plans); err != nil {
			return err
		}
		return env.Confirm()
	case updates > 0:
		return c.Consent(env, "change "+wording.Count(updates, "installed package"))
	}
	return nil
}

// carryOutSteps writes the objects, and waits for all of them if that was asked for.
func (c *InstallCmd) carryOutSteps(env *terminal.Env, cluster client.Client, steps []*step) error {
	objects, words := make([]v1.Package, len(steps)), make([]string, len(steps))
	for i, s := range steps {
		var err error
		if objects[i], words[i], err = s.carryOut(env.Context, cluster); err != nil {
			return err
		}
	}
	for i, s := range steps {
		if s.markDependency {
			if err := labelDependency(env.Context, cluster, objects[i]); err != nil {
				return err
			}
		}
	}
	if c.Wait > 0 {
		for i, p := range objects {
			if err := waitInstalled(env, cluster, p, c.Wait, false); err != nil {
				return err
			}
			words[i] = outcomeOfWait(env, p)
		}
	}
	return c.Print(env.Stdout, inventory.List(objects), func(w io.Writer) error {
		for i, p := range objects {
			if _, err := fmt.Fprintf(w, "%s %s (%s)\n", inventory.ShortName(p), words[i], terminal.Safe(p.PackageSpec().Package)); err != nil {
				return err
			}
		}
		return nil
	})
}
