package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrStillGoing is the failure of an uninstall that is not done in time.
var ErrStillGoing = errcode.Code{
	Name: "NotRemovedInTime", Class: errcode.Timeout,
	Cause: "The package or its objects were not gone in the time given with --wait.",
	Fix:   "The removal goes on. An object that stays has a finalizer that somebody must remove: look at it with kubectl.",
}

// uninstallArgs say what is uninstalled.
type uninstallArgs struct {
	Kind string `arg:"" enum:"provider,configuration,function" help:"Kind of package: provider, configuration or function."`
	Name string `arg:"" help:"Name of the package in the cluster."`
}

// live reads the package.
func (c *uninstallArgs) live(ctx context.Context, cluster client.Client) (v1.Package, error) {
	p, err := readPackageObject(ctx, cluster, kindOf(c.Kind), c.Name)
	if err != nil || p != nil {
		return p, err
	}
	all, err := loadPackages(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return nil, all.absent(c.Kind, c.Name)
}

// plan plans the uninstall.
func (c *uninstallArgs) plan(ctx context.Context, pl *clusterPlanner) (*planner.Plan, error) {
	p, err := c.live(ctx, pl.client)
	if err != nil {
		return nil, err
	}
	out, err := pl.Uninstall(ctx, p)
	return out, planFailed(err, "uninstall "+shortName(p))
}

type uninstallCmd struct {
	uninstallArgs
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, for the package and its objects to be gone."`
	DryRun bool          `help:"Show what would go, and take nothing away: the same as xpkg plan uninstall."`
	consentFlag
	clusterFlags
	planFlags
	outputFlag
}

// Run deletes a package; everything that it alone brought goes with it.
func (c *uninstallCmd) Run(env *Env) error {
	if c.DryRun {
		plan := planUninstallCmd{c.uninstallArgs, planOutput{clusterFlags: c.clusterFlags, planFlags: c.planFlags, outputFlag: c.outputFlag}}
		return plan.Run(env)
	}
	cluster, err := c.client()
	if err != nil {
		return err
	}
	p, err := c.live(env.Context, cluster)
	if err != nil {
		return err
	}
	var with leaving
	if c.Wait > 0 {
		if with, err = leavingWith(env.Context, cluster, p); err != nil {
			return err
		}
	}
	if err := c.remove(env, cluster, p); err != nil {
		return err
	}
	word := "deleted"
	if c.Wait > 0 {
		if err := waitGone(env, c.clusterFlags, cluster, p, with, c.Wait); err != nil {
			return err
		}
		word = "gone"
	}
	return c.print(env.Stdout, clean(p), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s %s\n", shortName(p), word)
		return err
	})
}

// remove deletes the package: with --yes as it is, and otherwise as it was when
// somebody agreed.
func (c *uninstallCmd) remove(env *Env, cluster client.Client, p v1.Package) error {
	if !c.Yes {
		agreed, err := c.ask(env)
		if err != nil {
			return err
		}
		_, err = carryOut(env.Context, cluster, agreed)
		return err
	}
	uid := p.GetUID()
	err := cluster.Delete(env.Context, p, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	return classify(client.IgnoreNotFound(err), "delete %s", shortName(p))
}

// ask shows a person what goes and asks for consent to it. Where there is nobody to
// ask, custom resources that would go are a reason to stop, and so are packages that
// need this one.
func (c *uninstallCmd) ask(env *Env) (p *planner.Plan, err error) {
	pl, err := c.open(c.clusterFlags)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	p, err = c.plan(env.Context, pl)
	if err != nil {
		return nil, err
	}
	if env.interactive() {
		if err := env.showPlan(p); err != nil {
			return nil, err
		}
		return p, env.confirm()
	}
	if err := p.BreakageError(); err != nil {
		return nil, err
	}
	if resources, uncounted := p.CountCustomResources(); resources > 0 || uncounted > 0 {
		return nil, c.consent(env, fmt.Sprintf("uninstall %s/%s: %s", c.Kind, c.Name, strings.TrimSuffix(lost(resources, uncounted), ".")))
	}
	return p, nil
}

// leaving is what a package owns that is uninstalled: its objects, and its revisions,
// which own them too.
type leaving struct {
	objects   []plan.Ref
	revisions []string
}

// owned reports whether an object still has an owner that goes. The garbage collector
// takes away one owner that is gone after the other, and the object with the last.
func (l leaving) owned(p v1.Package, o plan.Live) bool {
	return slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool {
		return r.UID == p.GetUID() || r.Kind == v1.RevisionKind(p.PackageKind()) && slices.Contains(l.revisions, r.Name)
	})
}

// leavingWith lists what the revisions of a package have established.
func leavingWith(ctx context.Context, cluster client.Client, p v1.Package) (leaving, error) {
	list := p.NewRevisionList()
	if err := cluster.List(ctx, list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		return leaving{}, classify(err, "list the revisions of %s", shortName(p))
	}
	var l leaving
	for _, rev := range list.Revisions() {
		l.revisions = append(l.revisions, rev.GetName())
		l.objects = append(l.objects, revision.Objects(rev)...)
	}
	return l, nil
}

// waitGone waits for the package and for what only it owned.
func waitGone(env *Env, flags clusterFlags, cluster client.Client, p v1.Package, with leaving, limit time.Duration) error {
	cfg, err := flags.config()
	if err != nil {
		return err
	}
	objects, err := apply.NewCluster(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(env.Context, limit)
	defer cancel()
	progress := newProgress(env.Stderr)
	defer progress.end()
	progress.say("removing %s and what it brought", shortName(p))
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		left, err := remains(ctx, cluster, objects, p, with)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && !left {
			return nil
		}
		select {
		case <-ctx.Done():
			if env.Context.Err() != nil {
				return env.Context.Err()
			}
			return ErrStillGoing.New(nil, "%s is still being removed", shortName(p))
		case <-tick.C:
		}
	}
}

// remains reports whether the package, or an object that it owns, is still there.
func remains(ctx context.Context, cluster client.Client, objects *apply.Cluster, p v1.Package, with leaving) (bool, error) {
	now := v1.NewPackage(p.PackageKind())
	err := cluster.Get(ctx, client.ObjectKeyFromObject(p), now)
	switch {
	case err == nil && now.GetUID() == p.GetUID():
		return true, nil
	case client.IgnoreNotFound(err) != nil:
		return false, classify(err, "read %s", shortName(p))
	}
	revisions := p.NewRevisionList()
	if err := cluster.List(ctx, revisions, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
		return false, classify(err, "list the revisions of %s", shortName(p))
	}
	for _, rev := range revisions.Revisions() {
		if metav1.IsControlledBy(rev, p) {
			return true, nil
		}
	}
	live, err := objects.Metadata(ctx, with.objects)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return false, classify(err, "read what %s brought", shortName(p))
	}
	for _, o := range live {
		if with.owned(p, o) {
			return true, nil
		}
	}
	return false, nil
}
