package operation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

// carryOut writes the package of the step, on the condition that the package has not changed since the plan was
// computed. The package manager carries out all other changes.
func (d *Done) carryOut(ctx context.Context, w writer) (err error) {
	switch {
	case d.IsCarriedOut:
		d.Object, d.Word = d.Live, "changed"
		return nil
	case d.Same:
		d.Object, d.isKept = d.Live, true
		return d.repeat(ctx, w)
	case d.Remove:
		d.Object, d.Word = d.Live, "deleted"
		return d.delete(ctx, w)
	}
	if d.Plan != nil && d.Plan.Operation == planner.Install || d.Plan == nil && d.Live == nil {
		return d.create(ctx, w)
	}
	switch d.Word = "updated"; {
	case d.RollsBack:
		d.Word = "rolled back"
	case d.Adopt:
		d.Word, d.isAdopted = "unchanged", d.Plan != nil && d.Plan.Adopts
	}
	if d.Plan == nil {
		return d.updateUnplanned(ctx, w)
	}
	return apiserver.RetryOnConflict(func() error {
		live, err := inventory.Get(ctx, w.Client, d.Plan.Package.Kind, d.Plan.Package.Name)
		if err != nil {
			return err
		}
		if err := planner.MovedError(d.Plan, d.Plan.CheckPackage(live)); err != nil {
			return err
		}
		d.Object = live
		return apiserver.Classify(updatePlanned(ctx, w, live, d.Step), "%s %s", d.Plan.Verb(), inventory.ShortName(live))
	})
}

// create creates the package. With Adopt, it keeps a package that exists from the wanted reference already.
func (d *Done) create(ctx context.Context, w writer) (err error) {
	want := d.Want
	if d.Plan != nil {
		if want, err = d.Plan.Wanted(); err != nil {
			return err
		}
	}
	err = w.create(ctx, want)
	switch {
	case err == nil:
		d.Object, d.Word, d.isNew = want, "created", true
		return nil
	case apierrors.IsAlreadyExists(err) && d.Adopt:
		live, err := inventory.Get(ctx, w.Client, want.PackageKind(), want.GetName())
		if err != nil {
			return err
		}
		if live == nil {
			return changedMeanwhile(want)
		}
		if err := InstalledOtherwise(live, want.PackageSpec().Package, ""); err != nil {
			return err
		}
		d.Object, d.isKept = live, true
		return d.repeat(ctx, w)
	case apierrors.IsAlreadyExists(err) && d.Plan != nil:
		return existsError(d.Plan, want)
	}
	return apiserver.Classify(err, "create %s", inventory.ShortName(want))
}

// updateUnplanned writes the wanted package, for a client without access to its content.
func (d *Done) updateUnplanned(ctx context.Context, w writer) error {
	revision.RecordVersion(d.Want, d.Live.PackageSpec().Package, d.RollsBack)
	d.Object = d.Want
	return apiserver.Classify(w.update(ctx, d.Want), "%s", d.String())
}

// delete deletes the package. One that is gone meanwhile, such as a dependency that the manager has deleted, is no
// error. Without a plan, the package is deleted as it is.
func (d *Done) delete(ctx context.Context, w writer) error {
	return apiserver.RetryOnConflict(func() error {
		now, err := inventory.Get(ctx, w.Client, d.Live.PackageKind(), d.Live.GetName())
		if err != nil || now == nil || now.GetUID() != d.Live.GetUID() || inventory.IsDeleting(now) {
			return err
		}
		if d.Plan == nil {
			if err := planner.CheckMaintained(ctx, w.frontend, w.Client, now, nil); err != nil {
				return PlanError(err, d.String())
			}
		} else {
			moved := d.Plan.CheckPackage(now)
			if d.asPlanned {
				moved = append(moved, planner.CheckDependency(d.Live, now)...)
			}
			if err := planner.MovedError(d.Plan, moved); err != nil {
				return err
			}
		}
		return apiserver.Classify(w.delete(ctx, now, d.answer()), "%s", d.String())
	})
}

// CheckRead fails if another client has changed or deleted a package after it was read and before the plan was made.
// The wanted package contains the other fields as they were read, so the plan would return them.
func CheckRead(p *planner.Plan, read v1.Package) error {
	moved := p.CheckPackage(read)
	for i := range moved {
		moved[i].Was, moved[i].Is = moved[i].Is, moved[i].Was
	}
	return planner.MovedError(p, moved)
}

// existsError returns the error of the plan of an install if another client has installed the package meanwhile.
func existsError(p *planner.Plan, installed v1.Package) error {
	return planner.MovedError(p, []planner.Difference{{What: inventory.ShortName(installed), Was: "absent", Is: "there"}})
}

func updatePlanned(ctx context.Context, w writer, live v1.Package, s *Step) error {
	p := s.Plan
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
	if len(s.consents) > 0 {
		live.SetAnnotations(desired.Overlay(live.GetAnnotations(), s.consents))
	}
	if p.Kinds != nil && len(p.Kinds.Choices) > 0 {
		// A wait recognizes by the retry that the manager has seen the choice.
		live.SetAnnotations(desired.Overlay(live.GetAnnotations(), p.Kinds.Choices, map[string]string{
			v1.AnnotationRetry: newRetry(),
		}))
	}
	graph.SetKindProviders(live, graph.KindProviders(want))
	if len(p.Adoptions) > 0 {
		revision.AllowAdoption(live, p.Adoptions)
	}
	if len(p.Accepts) > 0 {
		revision.AcceptBreaks(live, p.Content.Digest, p.Accepts)
	}
	return w.update(ctx, live)
}

// repeat requests the package as it is: it leaves its transaction, and if the package has failed, the manager tries it
// again at once. With Adopt, a package that was a dependency counts as installed explicitly, also if another command
// was about to label it.
func (d *Done) repeat(ctx context.Context, w writer) error {
	p := d.Object
	if err := leaveTransaction(ctx, w.Client, p); err != nil {
		return err
	}
	return patchMetadata(ctx, w.Client, p, func() (map[string]any, error) {
		d.Word = "unchanged"
		metadata, annotations := map[string]any{}, map[string]any{}
		if d.Adopt && (graph.IsAutoInstalled(p) || graph.IsUnmarkedDependency(p)) {
			d.isAdopted = true
			metadata["labels"], annotations[graph.AnnotationRequiredBy] = map[string]any{graph.LabelAutoInstalled: nil}, nil
		}
		if hasFailed(p) {
			d.Word = "retried"
			annotations[v1.AnnotationRetry] = newRetry()
		}
		if len(annotations) > 0 {
			metadata["annotations"] = annotations
		}
		return metadata, nil
	})
}

// newRetry returns a new value of [v1.AnnotationRetry].
func newRetry() string { return time.Now().UTC().Format(time.RFC3339Nano) }

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
	code, known := codeNamed(string(ready.Reason))
	return ready.Status == corev1.ConditionFalse && known && !code.Approval
}
