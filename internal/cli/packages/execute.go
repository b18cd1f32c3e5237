package packages

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/packages/undomark"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// keepNeeded removes the marks of the packages on which a plan depends, so that no command undoes their last changes after the write. It
// fails if that has happened since the plan was made.
func keepNeeded(ctx context.Context, cluster client.Client, p *planner.Plan) error {
	for _, needed := range p.Undoable {
		if err := undomark.Remove(ctx, cluster, needed); err != nil {
			return err
		}
	}
	return nil
}

// carryOut writes the package of a plan, on the condition that the package has not changed since the plan was
// computed. The package manager carries out all other changes. It returns the package before the write, or nil for a new one, and after it.
func carryOut(ctx context.Context, cluster client.Client, p *planner.Plan) (before, after v1.Package, err error) {
	if err := keepNeeded(ctx, cluster, p); err != nil {
		return nil, nil, err
	}
	if p.Operation == planner.Install {
		after, err = createPlanned(ctx, cluster, p)
		return nil, after, err
	}
	err = apiserver.RetryOnConflict(func() error {
		live, err := inventory.Get(ctx, cluster, p.Package.Kind, p.Package.Name)
		if err != nil {
			return err
		}
		if err := planner.MovedError(p, p.CheckPackage(live)); err != nil {
			return err
		}
		before, after = live.DeepCopyObject().(v1.Package), live
		if p.Operation == planner.Uninstall {
			err = deletePlanned(ctx, cluster, live)
		} else {
			err = updatePlanned(ctx, cluster, live, p)
		}
		return apiserver.Classify(err, "%s %s", p.Verb(), inventory.ShortName(live))
	})
	return before, after, err
}

// checkRead fails if another client has changed or deleted a package after it was read and before the plan was made. The wanted package
// contains the other fields as they were read, so the plan would return them.
func checkRead(p *planner.Plan, read v1.Package) error {
	moved := p.CheckPackage(read)
	for i := range moved {
		moved[i].Was, moved[i].Is = moved[i].Is, moved[i].Was
	}
	return planner.MovedError(p, moved)
}

func createPlanned(ctx context.Context, cluster client.Client, p *planner.Plan) (v1.Package, error) {
	want, err := p.Wanted()
	if err != nil {
		return nil, err
	}
	kind := want.GetObjectKind().GroupVersionKind()
	err = cluster.Create(ctx, want, client.FieldOwner(plan.FieldManager))
	want.GetObjectKind().SetGroupVersionKind(kind)
	if apierrors.IsAlreadyExists(err) {
		return nil, existsError(p, want)
	}
	return want, apiserver.Classify(err, "create %s", inventory.ShortName(want))
}

// existsError returns the error of the plan of an install if another client has installed the package meanwhile.
func existsError(p *planner.Plan, installed v1.Package) error {
	return planner.MovedError(p, []planner.Difference{{What: inventory.ShortName(installed), Was: "absent", Is: "there"}})
}

func updatePlanned(ctx context.Context, cluster client.Client, live v1.Package, p *planner.Plan) error {
	want, err := p.Wanted()
	if err != nil {
		return err
	}
	from := live.PackageSpec().Package
	*live.PackageSpec() = *want.PackageSpec()
	revision.RecordVersion(live, from, p.RollsBack)
	if r := live.RuntimeSpec(); r != nil {
		*r = *want.RuntimeSpec()
	}
	if p.Adopts {
		graph.Adopt(live)
	}
	if p.Webhooks != nil && p.Webhooks.Consents {
		live.SetAnnotations(desired.Overlay(live.GetAnnotations(), map[string]string{
			webhooks.AnnotationAllowed: want.GetAnnotations()[webhooks.AnnotationAllowed],
		}))
	}
	graph.SetKindProviders(live, graph.KindProviders(want))
	if len(p.Adoptions) > 0 {
		revision.AllowAdoption(live, p.Adoptions)
	}
	kind := live.GetObjectKind().GroupVersionKind()
	err = cluster.Update(ctx, live, client.FieldOwner(plan.FieldManager))
	live.GetObjectKind().SetGroupVersionKind(kind)
	return err
}

func deletePlanned(ctx context.Context, cluster client.Client, live v1.Package) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := cluster.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(propagation))
	return client.IgnoreNotFound(err)
}

// propagation is the propagation policy of deletions. Objects are deleted after the package: with foreground deletion,
// the runtime would lose its permissions before its custom resources are deleted.
const propagation = metav1.DeletePropagationBackground

// printNotes prints the warnings of a plan that is not shown, and names the objects that it does not install.
func printNotes(env *terminal.Env, p *planner.Plan) {
	for _, text := range p.UnusualWarnings() {
		fmt.Fprintf(env.Stderr, "note: %s: %s\n", p.Package.Short(), terminal.Safe(text))
	}
	printLeftOut(env, p)
}

// printLeftOut names the objects that a plan does not install.
func printLeftOut(env *terminal.Env, p *planner.Plan) {
	for _, l := range p.AllLeftOut() {
		fmt.Fprintf(env.Stderr, "note: %s\n", terminal.Safe(l.String()))
	}
}

// showPlan writes a plan to standard error, before the user is asked to confirm it.
func showPlan(env *terminal.Env, p *planner.Plan) error {
	if err := plantext.Write(env.Stderr, p); err != nil {
		return fmt.Errorf("show the plan: %w", err)
	}
	return nil
}

// repeat requests a package as it is: no other command undoes its last change, and if the package has failed, the
// manager tries it again at once. It returns the word for the result.
func repeat(ctx context.Context, cluster client.Client, p v1.Package) (word string, err error) {
	if err := undomark.Remove(ctx, cluster, p); err != nil {
		return "", err
	}
	err = inventory.PatchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if word = "unchanged"; !hasFailed(p) {
			return nil, nil
		}
		word = "retried"
		return map[string]any{"annotations": map[string]any{v1.AnnotationRetry: time.Now().UTC().Format(time.RFC3339Nano)}}, nil
	})
	return word, err
}

// hasFailed reports whether the last attempt to install the requested version of a package failed, other than that it
// waits for a decision of a user.
func hasFailed(p v1.Package) bool {
	ready := p.GetCondition(v1.TypeReady)
	switch {
	case v1.IsPaused(p), ready.ObservedGeneration != p.GetGeneration():
		return false
	case revision.PolicyOf(p).Back != "":
		return true
	}
	code, known := errcodes.Named(string(ready.Reason))
	return ready.Status == corev1.ConditionFalse && known && !code.Approval
}
