package transactions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

const (
	// lookAgain is the longest time until a transaction that waits looks at the clock again, which can be changed.
	lookAgain = 10 * time.Minute
	// watchInterval is the interval between checks of packages that the ChangePolicy watches.
	watchInterval = 5 * time.Second
)

// awaiting returns the transactions that wait for what the ChangePolicy asks.
func (r *Reconciler) awaiting(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.TransactionList
	if err := r.Cache.List(ctx, &list); err != nil {
		return nil // A cache always answers.
	}
	var out []reconcile.Request
	for i := range list.Items {
		if t := &list.Items[i]; t.AwaitsPolicy() {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: t.Name}})
		}
	}
	return out
}

// ask returns what the ChangePolicy asks of a plan, or nil if there is no policy. It reads the policy and the approvals
// as they are now.
func (r *run) ask(ctx context.Context, steps []*operation.Step) (*v1alpha1.AskedByPolicy, error) {
	p, err := operation.ReadPolicy(ctx, r.Client)
	if p == nil || err != nil {
		return nil, err
	}
	now := &v1alpha1.Transaction{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(r.t), now); err != nil {
		return nil, apiserver.Classify(err, "read the approvals of the transaction %s", r.t.Name)
	}
	r.t.Annotations, r.t.ResourceVersion = now.Annotations, now.ResourceVersion
	digest := planner.Agreement(operation.Plans(steps))
	out := &v1alpha1.AskedByPolicy{Policy: identity(p), Plan: digest, Watch: p.Spec.Watch}
	out.People, out.Reasons = changepolicy.Needs(p.Spec, operation.FactsOf(steps))
	r.update(p, r.t, out)
	if out.People == 0 {
		return out, nil
	}
	if r.t.Annotations[fence.AnnotationUser] == "" {
		return nil, operation.ErrNoCreator.New(nil, "the ChangePolicy asks for an approval (%s) by another user than the "+
			"creator of the transaction, which does not name its creator", strings.Join(out.Reasons, ", "))
	}
	return out, r.Approvals(ctx)
}

// identity identifies the state of a policy.
func identity(p *v1alpha1.ChangePolicy) string { return fmt.Sprintf("%s/%d", p.UID, p.Generation) }

// update writes what depends on the time and on approvals.
func (r *Reconciler) update(p *v1alpha1.ChangePolicy, t *v1alpha1.Transaction, asked *v1alpha1.AskedByPolicy) {
	asked.ApprovedBy = nil
	if asked.People > 0 {
		asked.ApprovedBy = changepolicy.Approvers(
			t.Annotations[fence.AnnotationApprovals], asked.Plan, t.Annotations[fence.AnnotationUser],
		)
	}
	asked.OpensAt, asked.Closed, asked.TimeZone = nil, "", p.Spec.TimeZone
	open, next, why, err := changepolicy.Opens(p.Spec, r.Now())
	switch {
	case err != nil:
		asked.Closed = "the ChangePolicy is not valid, so that no transaction starts: " + err.Error()
	case !open:
		asked.Closed = why
		if !next.IsZero() {
			asked.OpensAt = new(metav1.NewTime(next))
		}
	}
}

// waitsFor returns what a transaction waits for, and the time after which it looks again; zero if it may start.
func (r *Reconciler) waitsFor(t *v1alpha1.Transaction, asked *v1alpha1.AskedByPolicy) (string, time.Duration) {
	if asked == nil {
		return "", 0
	}
	var out []string
	again := lookAgain
	switch {
	case asked.OpensAt != nil:
		opens := asked.OpensAt.Time
		if zone, err := time.LoadLocation(asked.TimeZone); err == nil {
			opens = opens.In(zone)
		}
		out = append(out, fmt.Sprintf("starts %s, because %s", changepolicy.Format(opens), asked.Closed))
		again = min(again, max(opens.Sub(r.Now()), time.Second))
	case asked.Closed != "":
		out = append(out, "waits, because "+asked.Closed)
	}
	if missing := int(asked.People) - len(asked.ApprovedBy); missing > 0 {
		text := fmt.Sprintf(
			"needs the approval of %s (%s)", changepolicy.People(asked.People), strings.Join(asked.Reasons, ", "),
		)
		if len(asked.ApprovedBy) > 0 {
			text += ", and has that of " + strings.Join(asked.ApprovedBy, ", ")
		}
		if changepolicy.HasFormer(t.Annotations[fence.AnnotationApprovals], asked.Plan) {
			text += "; approvals of a former plan do not count"
		}
		out = append(out, text+": run `xpkg approve transaction "+t.Name+"` as another user than its creator")
	}
	if len(out) == 0 {
		return "", 0
	}
	return strings.Join(out, "; "), again
}

// stillWaits returns the time after which a transaction that waits for the ChangePolicy looks again; zero if it must be
// planned. It makes no call to the API server, unless something has changed.
func (r *Reconciler) stillWaits(ctx context.Context, t *v1alpha1.Transaction) (time.Duration, error) {
	if !t.AwaitsPolicy() || t.DeletionTimestamp != nil {
		return 0, nil
	}
	p, err := operation.ReadPolicy(ctx, r.Cache)
	asked := t.Status.Policy.DeepCopy()
	if err != nil || p == nil || identity(p) != asked.Policy || changepolicy.ApprovesOther(
		t.Annotations[fence.AnnotationApprovals], asked.Plan, t.Annotations[fence.AnnotationUser], max(asked.People, 1),
	) {
		return 0, err
	}
	r.update(p, t, asked)
	message, again := r.waitsFor(t, asked)
	if again == 0 {
		return 0, nil
	}
	return again, r.save(ctx, t, func(s *v1alpha1.TransactionStatus) { s.Policy, s.Message = asked, message })
}

// watch ends the transaction when its packages have been healthy for the time of the ChangePolicy, and fails it if one
// of them is not. It returns the time after which it looks again.
func (r *run) watch(ctx context.Context) (time.Duration, error) {
	s := r.t.Status
	r.Held.hold(ctx, r.t.Name, changedIn(s.Packages))
	for _, name := range operation.Stable(s.Packages) {
		// The cache can be behind.
		err := operation.CheckStillHealthy(ctx, r.Cache, name, s.HealthySince.Time)
		if err != nil {
			err = operation.CheckStillHealthy(ctx, r.Client, name, s.HealthySince.Time)
		}
		switch {
		case errors.Is(err, apiserver.ErrCluster):
			return 0, err
		case err != nil:
			return 0, r.fail(ctx, err)
		}
	}
	end := s.HealthySince.Add(s.Policy.WatchTime())
	left := end.Sub(r.Now())
	if left <= 0 {
		return 0, r.finish(ctx, v1alpha1.Succeeded, operation.FailureOf(s))
	}
	message := "all packages are healthy; the ChangePolicy watches them until " + changepolicy.Format(end.UTC())
	return min(left, watchInterval), r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) { setProgress(s, message) })
}

// changedIn returns the packages of a record.
func changedIn(record []v1alpha1.ChangedPackage) []v1alpha1.PackageName {
	out := make([]v1alpha1.PackageName, len(record))
	for i, c := range record {
		out[i] = c.PackageName
	}
	return slices.Clip(out)
}
