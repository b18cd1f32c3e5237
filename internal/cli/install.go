package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of an install.
var (
	ErrInstalledOtherwise = errcode.Code{
		Name: "AlreadyInstalled", Class: errcode.Conflict,
		Cause: "A package of that kind and name is installed from another reference.",
		Fix:   "To change its version, use `xpkg update`. To install both, give the new package another name.",
	}
	ErrWait = errcode.Code{
		Name: "NotHealthyInTime", Class: errcode.Timeout,
		Cause: "The package did not become healthy in the time given with --wait.",
		Fix:   "The install goes on: look at it with `xpkg tree NAME`, or wait for longer.",
	}
)

type installCmd struct {
	installArgs
	Lock   string        `placeholder:"FILE" help:"Install everything that this lock file has, at its digests."`
	Wait   time.Duration `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, for the package to become healthy."`
	DryRun bool          `help:"Show what would change, and change nothing: the same as xpkg plan install."`
	consentFlag
	clusterFlags
	planFlags
	outputFlag
}

// Run creates the object that installs a package, or the objects for a lock file.
func (c *installCmd) Run(env *Env) error {
	if c.Lock != "" {
		return c.runLock(env)
	}
	if c.DryRun {
		plan := planInstallCmd{c.installArgs, planOutput{clusterFlags: c.clusterFlags, planFlags: c.planFlags, outputFlag: c.outputFlag}}
		return plan.Run(env)
	}
	p, err := c.object()
	if err != nil {
		return err
	}
	cluster, err := c.client()
	if err != nil {
		return err
	}
	if c.AllowWebhooks || !c.Yes && env.interactive() {
		if err := c.review(env, p); err != nil {
			return err
		}
	}
	allowed := p.GetAnnotations()[webhooks.AnnotationAllowed]
	created, err := c.create(env, cluster, p)
	if err != nil {
		return err
	}
	if !created && allowed != "" {
		if err := allowWebhooks(env, cluster, p, allowed); err != nil {
			return err
		}
	}
	if c.Wait > 0 {
		if err := waitInstalled(env, cluster, p, c.Wait, created); err != nil {
			return err
		}
	}
	return c.print(env.Stdout, clean(p), func(w io.Writer) error {
		word := "unchanged"
		if created {
			word = "created"
		}
		if c.Wait > 0 {
			word = waitedFor(env, p)
		}
		_, err := fmt.Fprintf(w, "%s %s (%s)\n", shortName(p), word, p.PackageSpec().Package)
		return err
	})
}

// review shows what the install would change, and asks for consent on a terminal. Without
// one an install goes ahead. It adds the consent to the webhooks of the plan to want, if the
// user gives that.
func (c *installCmd) review(env *Env, want v1.Package) (err error) {
	pl, err := c.open(c.clusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	p, err := planWith(env, "to install "+shortName(want), func() (*planner.Plan, error) {
		pl.Upgrades = c.DependencyUpgrades
		return planInstall(env.Context, pl, want, c.AllowWebhooks)
	})
	switch {
	case unseen(err) && !c.AllowWebhooks:
		env.noPlan(err)
		return env.confirm()
	case err != nil:
		return err
	case !p.WritesPackage():
		return nil
	}
	if err := p.RefusalError(); err != nil {
		return err
	}
	if err := env.showPlan(p); err != nil {
		return err
	}
	planned, err := p.Wanted()
	if err != nil {
		return err
	}
	if allowed := planned.GetAnnotations()[webhooks.AnnotationAllowed]; allowed != "" {
		want.SetAnnotations(desired.Overlay(want.GetAnnotations(), map[string]string{webhooks.AnnotationAllowed: allowed}))
	}
	if c.Yes || !env.interactive() {
		return nil
	}
	return env.confirm()
}

// create makes the object, or finds that it is there already.
func (c *installCmd) create(env *Env, cluster client.Client, p v1.Package) (created bool, err error) {
	want := p.PackageSpec().Package
	kind := p.GetObjectKind().GroupVersionKind()
	err = cluster.Create(env.Context, p)
	p.GetObjectKind().SetGroupVersionKind(kind)
	if !apierrors.IsAlreadyExists(err) {
		return err == nil, classify(err, "create %s", shortName(p))
	}
	if err := cluster.Get(env.Context, client.ObjectKeyFromObject(p), p); err != nil {
		return false, classify(err, "read %s", shortName(p))
	}
	p.GetObjectKind().SetGroupVersionKind(kind)
	if err := installedOtherwise(p, want); err != nil {
		return false, err
	}
	return false, adopt(env, cluster, p)
}

// adopt makes a package that was installed because others need it one that a person
// wants: it stays when nobody needs it any more.
func adopt(env *Env, cluster client.Client, p v1.Package) error {
	if !graph.IsAutoInstalled(p) {
		return nil
	}
	kind := p.GetObjectKind().GroupVersionKind()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null},"annotations":{%q:null}}}`, graph.LabelAutoInstalled, graph.AnnotationRequiredBy)
	if err := cluster.Patch(env.Context, p, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return classify(err, "change %s", shortName(p))
	}
	p.GetObjectKind().SetGroupVersionKind(kind)
	fmt.Fprintf(env.Stderr, "note: %s was installed for others. It is yours now, and stays when nobody needs it any more.\n", shortName(p))
	return nil
}

// waitInstalled waits until p is healthy. An install that has failed, and of which
// nothing is in the cluster, is taken back, so that nothing half-made stays.
func waitInstalled(env *Env, cluster client.Client, p v1.Package, limit time.Duration, created bool) error {
	ctx, cancel := context.WithTimeout(env.Context, limit)
	defer cancel()
	progress := newProgress(env.Stderr)
	defer progress.end()
	doing := "installing"
	if !created {
		doing = "waiting for"
	}
	progress.say("%s %s from %s", doing, shortName(p), p.PackageSpec().Package)
	err := waitHealthy(ctx, cluster, p, progress)
	progress.end()
	if err == nil || env.Context.Err() != nil {
		return cmp.Or(err, env.Context.Err())
	}
	_, _, failed := failureOf(p)
	if created && failed && p.PackageStatus().CurrentRevision == "" {
		return takeBack(env, cluster, p, err)
	}
	return err
}

func takeBack(env *Env, cluster client.Client, p v1.Package, why error) error {
	uid := p.GetUID()
	if err := cluster.Delete(env.Context, p, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return errors.Join(why, classify(err, "remove %s again", shortName(p)))
	}
	f := errcode.From(why)
	advice := f.Do
	if errors.Is(why, ErrWait) {
		advice = "Mend what the message names, and install it again."
	}
	return f.WithDo("%s Nothing was installed: %s was removed again.", advice, shortName(p))
}

// look is how often a package that is waited for is read.
const look = 200 * time.Millisecond

func waitHealthy(ctx context.Context, cluster client.Client, p v1.Package, progress *progress) error {
	kind := p.GetObjectKind().GroupVersionKind()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil && ctx.Err() == nil {
			return classify(err, "read %s", shortName(p))
		}
		p.GetObjectKind().SetGroupVersionKind(kind)
		health := p.GetCondition(v1.TypeHealthy)
		current := health.ObservedGeneration == p.GetGeneration()
		if current && health.Status == corev1.ConditionTrue {
			return nil
		}
		if current && health.Message != "" {
			if err := final(p); err != nil && !allowedMeanwhile(ctx, cluster, p, err) {
				return err
			}
		}
		if current && health.Message != "" || paused(p) {
			progress.say("%s: %s", shortName(p), unhealthy(p))
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return ErrWait.New(errors.New(strings.TrimSuffix(unhealthy(p), ".")), "%s is not healthy", shortName(p))
		case <-tick.C:
		}
	}
}

// unhealthy says why a package is not known to be healthy as it is now.
func unhealthy(p v1.Package) string {
	health := p.GetCondition(v1.TypeHealthy)
	switch {
	case paused(p):
		return p.GetCondition(v1.TypeSynced).Message
	case health.Message == "" || health.ObservedGeneration != p.GetGeneration():
		return "the package manager has not looked at it yet; is one running?"
	}
	return health.Message
}

func paused(p v1.Package) bool {
	synced := p.GetCondition(v1.TypeSynced)
	return synced.Reason == v1.ReasonPaused && synced.Status == corev1.ConditionFalse
}

// waiting says which revision waits for a person to activate it, or nothing.
func waiting(p v1.Package) string {
	if c := p.GetCondition(v1.TypeInstalled); c.Reason == v1.ReasonInactive && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}

// waitedFor is what has become of a package that was waited for. One that runs another
// revision than it asks for, until a person says so, is as it should be, and that is told.
func waitedFor(env *Env, p v1.Package) string {
	if why := waiting(p); why != "" {
		fmt.Fprintf(env.Stderr, "note: %s\n", safe(why))
		return "waits to be activated"
	}
	return "healthy"
}

// final tells a failure that waiting does not mend from one that it may.
func final(p v1.Package) error {
	code, what, _ := failureOf(p)
	outcome := "cannot be installed"
	switch code.Class.Name {
	case errcode.Invalid.Name, errcode.Usage.Name, errcode.NotFound.Name, errcode.Unauthorized.Name,
		errcode.Untrusted.Name, errcode.Limit.Name, errcode.Unsupported.Name:
	default:
		if code.Name != controller.ErrRolledBack.Name {
			return nil
		}
		outcome = "does not run what it asks for"
	}
	err := code.New(errors.New(what), "%s %s", shortName(p), outcome)
	if !strings.HasSuffix(p.GetCondition(v1.TypeHealthy).Message, code.Fix) {
		// That of the code in general is not what helps here.
		return err.WithDo("The message says what to do.")
	}
	return err
}

// failureOf reads the failure in the message of the condition Healthy, which is
// "CODE: what failed. What to do."
func failureOf(p v1.Package) (code errcode.Code, what string, failed bool) {
	name, rest, _ := strings.Cut(p.GetCondition(v1.TypeHealthy).Message, ": ")
	if code, known := errcodes.Named(name); known {
		return code, strings.TrimSuffix(strings.TrimSuffix(rest, " "+code.Fix), "."), true
	}
	return errcode.Code{}, "", false
}
