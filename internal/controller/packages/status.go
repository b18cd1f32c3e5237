package packages

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// setHealth copies the health of the active revision into the conditions of its package, with
// Crossplane's reasons, and returns the summary of the package.
func (r *Reconciler) setHealth(p v1.Package, current, active string, revisions []v1.PackageRevision) revision.Summary {
	now := r.API.Time()
	running := current
	if active != "" {
		running = active
	}
	healthy, summary := v1.UnknownHealth("The revision "+running+" is being established."), revision.Progressing("")
	for _, rev := range revisions {
		// The status of a revision that is being activated, or tried again, is older.
		isTried := running == current && !v1.IsRetryHandled(p, rev.GetAnnotations()[v1.AnnotationRetry])
		if rev.GetName() == running && (active == "" || revision.IsActive(rev)) &&
			(!isTried || revision.Summarize(rev).Ready) {
			healthy, summary = revision.Health(rev), revision.Summarize(rev)
		}
	}
	p.SetConditions(now, healthy)
	if b := p.PackageStatus().Rollback; b != nil && active == b.To {
		summary = r.Rollback.Summarize(p, summary)
		p.SetConditions(now, v1.Inactive(summary.Message), v1.RolledBack(summary.Message))
		return summary
	}
	if active == current {
		p.SetConditions(now, v1.Active())
		return summary
	}
	inactive := v1.Inactive(fmt.Sprintf("Revision %s waits to be activated: run `kubectl patch %srevision.%s %s --type merge -p '{\"spec\":{\"desiredState\":\"Active\"}}'`.",
		current, strings.ToLower(p.PackageKind()), v1.Group, current))
	p.SetConditions(now, inactive)
	return revision.Summary{Waiting: true, Reason: inactive.Reason, Message: inactive.Message}
}

// setHolder states in the conditions whether a transaction changes a package.
func (r *Reconciler) setHolder(p v1.Package) {
	holder := r.Holder(p.PackageKind(), p.GetName())
	if holder == "" {
		p.PackageStatus().RemoveCondition(v1.TypeInTransaction)
		return
	}
	p.SetConditions(r.API.Time(), v1.InTransaction(fmt.Sprintf(
		"The transaction %s changes this package. A change by another client is kept, and takes the package out of the transaction.",
		holder)))
}

// keepLastKnown keeps the health of a package whose content cannot be read now, if its spec has not changed
// and its revision exists.
func (r *Reconciler) keepLastKnown(
	p v1.Package, resolved state.Resolution, current string, revisions []v1.PackageRevision, cause error,
) (ctrl.Result, revision.Summary, error) {
	exists := slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == current })
	status := p.PackageStatus()
	if !requeue.IsTransient(cause) || !exists || status.CurrentRevision != current ||
		status.CurrentIdentifier != p.PackageSpec().Package {
		return ctrl.Result{}, revision.Summary{}, cause
	}
	active := ""
	if i := slices.IndexFunc(revisions, revision.IsActive); i >= 0 {
		active = revisions[i].GetName()
	}
	resolved.LookupError = cause
	summary := r.setHealth(p, current, active, revisions)
	return r.recordLookup(p, revisions, resolved), summary, nil
}

// recordLookup records the result of the lookup in the conditions of a package, and returns when the package is
// reconciled again without an event: at the activation deadline, when a revision is tried again after a rollback, or at
// the next lookup if that is earlier. Lookups are repeated after a failure and, unless the package refers to a digest,
// with the pull policy Always.
func (r *Reconciler) recordLookup(p v1.Package, revisions []v1.PackageRevision, resolved state.Resolution) ctrl.Result {
	r.API.Status.SetLookupResult(p, resolved.LookupError)
	atDeadline := ctrl.Result{RequeueAfter: max(0, r.Rollback.Remaining(p, revisions))}
	if b := p.PackageStatus().Rollback; b != nil && b.RetryTime != nil {
		atDeadline = requeue.By(atDeadline, b.RetryTime.Time, r.API.Now())
	}
	follows := p.PackageSpec().PackagePullPolicy == corev1.PullAlways && resolved.Origin.Ref.Digest.IsZero()
	if !follows && resolved.LookupError == nil {
		return atDeadline
	}
	return requeue.Within(atDeadline, requeue.AfterLookup(resolved.LookupError, r.Resolver.Poll, r.API.Now()))
}
