package operation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// LabelCommand with the value "true" marks the transactions that commands have created. The manager deletes the oldest
// of them that have ended, beyond a hundred.
const LabelCommand = "xpkg.dev/command"

// Annotations of a transaction for the history of the packages.
const (
	// AnnotationUser is the name of the user who has created the transaction. The fence of transactions denies others.
	AnnotationUser = fence.AnnotationUser
	// AnnotationCause is the reason of a change, as kubectl and Deployments name it: for a command, its command line.
	AnnotationCause = "kubernetes.io/change-cause"
)

// idleTime is the time for which a transaction may report no progress, beyond the time to wait, before a command stops
// waiting for it.
const idleTime = 5 * time.Minute

// quietTime is the time for which a command waits for a transaction without a report.
const quietTime = time.Second

// Run carries out the steps. The manager makes a change of several packages, one that this command cannot plan, an
// atomic one, and all changes while a ChangePolicy exists, as a transaction: Run creates it and follows it, or follows
// one that makes the same changes already. The API server makes a change of one package whole, so that Run writes it
// itself, like all changes in a cluster whose manager serves no transactions, or not for this user.
func (o Operation) Run(ctx context.Context, steps []*Step) ([]*Done, error) {
	isGoverned, err := o.isGoverned(ctx)
	if err != nil {
		return nil, err
	}
	t, err := o.unfinished(ctx, steps, func(context.Context) (bool, error) { return isGoverned, nil })
	if t != nil && !o.Starts(t) {
		t = nil // It is waited for.
	}
	if err == nil && t == nil && o.needsTransaction(steps, isGoverned) {
		t, err = o.createTransaction(ctx, steps)
	}
	var done []*Done
	if err == nil && t != nil {
		done, err = o.Follow(ctx, t)
	}
	switch {
	case isGoverned && err != nil: // The fence of changes denies other writes.
	case errors.Is(err, errMayNot) && !o.Atomic:
		o.Note("You may not create transactions: the command writes the packages itself, and must not be stopped.")
		fallthrough
	case err == nil && t == nil, errors.Is(err, ErrNoTransactions) && !o.Atomic:
		return o.CarryOut(ctx, steps)
	}
	return done, err
}

// isGoverned reports whether a ChangePolicy exists. For a user who may not read it, the fence of changes decides.
func (o Operation) isGoverned(ctx context.Context) (bool, error) {
	p, err := ReadPolicy(ctx, o.Client)
	if errors.Is(err, apply.ErrForbidden) {
		return false, nil
	}
	return p != nil, err
}

// needsTransaction reports whether the manager makes the changes of steps.
func (o Operation) needsTransaction(steps []*Step, isGoverned bool) bool {
	changes := slices.DeleteFunc(slices.Clone(steps), func(s *Step) bool { return s.Same || s.isGone })
	isUnplanned := slices.ContainsFunc(changes, func(s *Step) bool { return !s.Remove && s.Plan == nil })
	return len(changes) > 1 || isUnplanned || (o.Atomic || isGoverned) && len(changes) > 0
}

// onFailure returns the failure policy of a transaction of the operation.
func (o Operation) onFailure() v1alpha1.FailurePolicy {
	if o.Atomic {
		return v1alpha1.Return
	}
	return v1alpha1.Keep
}

// longestCause is the length of a reason in bytes.
const longestCause = 500

// createTransaction creates the transaction of steps.
func (o Operation) createTransaction(ctx context.Context, steps []*Step) (*v1alpha1.Transaction, error) {
	spec, err := NewTransaction(steps)
	if err != nil {
		return nil, err
	}
	for i := range spec.Remove {
		spec.Remove[i].OnlyOrphan = o.OnlyOrphans
	}
	spec.OnFailure, spec.Deadline = o.onFailure(), &metav1.Duration{Duration: o.Wait}
	t := &v1alpha1.Transaction{
		ObjectMeta: metav1.ObjectMeta{
			Name: "xpkg-" + strings.ToLower(rand.Text()[:10]), Labels: map[string]string{LabelCommand: "true"},
			Annotations: map[string]string{},
		}, Spec: spec,
	}
	if o.Cause != "" {
		t.Annotations[AnnotationCause] = wording.Clip(o.Cause, longestCause)
	}
	// Without the name, the history names the client.
	if user, err := apiserver.User(ctx, o.Client); err == nil {
		t.Annotations[AnnotationUser] = user
	}
	err = o.Client.Create(ctx, t, client.FieldOwner(plan.FieldManager))
	if err != nil && o.Client.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(t), t) == nil {
		return t, nil // The connection ended before the response.
	}
	return t, transactionError(err, "create a transaction")
}

// errMayNot is in the chain of the error for a user who may not create a transaction.
var errMayNot = errors.New("this user may not create transactions")

// transactionError returns the error of a request for transactions.
func transactionError(err error, what string) error {
	switch _, isDenied := apply.DenialOf(err); {
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return ErrNoTransactions.New(nil, "the package manager of this cluster carries out no transactions")
	case apierrors.IsForbidden(err) && (!isDenied || strings.Contains(err.Error(), fence.TransactionsName)):
		failed := errcode.From(apiserver.Classify(fmt.Errorf("%w: %w", errMayNot, err), "%s", what))
		return failed.Also("Or repeat the command without --atomic.")
	}
	return apiserver.Classify(err, "%s", what)
}

// Starts reports whether a transaction is as the operation would create it.
func (o Operation) Starts(t *v1alpha1.Transaction) bool {
	return t.Spec.OnFailure == o.onFailure() && t.Spec.Deadline != nil && t.Spec.Deadline.Duration == o.Wait
}

// Unfinished returns a transaction that has not ended and makes the changes of steps, or nil: the one of a command that
// was stopped.
func (o Operation) Unfinished(ctx context.Context, steps []*Step) (*v1alpha1.Transaction, error) {
	return o.unfinished(ctx, steps, o.isGoverned)
}

// unfinished is like Unfinished, with the given answer to isGoverned, which is only needed for a single package.
func (o Operation) unfinished(
	ctx context.Context, steps []*Step, isGoverned func(context.Context) (bool, error),
) (*v1alpha1.Transaction, error) {
	if !o.Atomic && len(steps) < 2 {
		if governed, err := isGoverned(ctx); !governed || err != nil {
			return nil, err
		}
	}
	var list v1alpha1.TransactionList
	if err := transactionError(o.Client.List(ctx, &list), "list transactions"); err != nil {
		if !o.Atomic && (errors.Is(err, ErrNoTransactions) || errors.Is(err, errMayNot)) {
			return nil, nil
		}
		return nil, err
	}
	for i := range list.Items {
		t := &list.Items[i]
		if !t.Status.Phase.IsFinal() && makes(t.Spec, steps) {
			return t, nil
		}
	}
	return nil, nil
}

// makes reports whether a transaction makes the changes of steps. Packages that it has removed have no step any more.
func makes(spec v1alpha1.TransactionSpec, steps []*Step) bool {
	installs := 0
	for _, s := range steps {
		found := false
		if s.Remove {
			found = slices.ContainsFunc(
				spec.Remove, func(r v1alpha1.RemovedPackage) bool { return r.PackageName == nameOf(s.Live) },
			)
		} else {
			installs++
			want := s.Subject()
			found = slices.ContainsFunc(spec.Packages, func(w v1alpha1.WantedPackage) bool {
				return w.PackageName == nameOf(want) && oci.SameVersion(w.Spec.Package, want.PackageSpec().Package)
			})
		}
		if !found {
			return false
		}
	}
	return installs == len(spec.Packages)
}

// place returns the place of the package that the message of a transaction names among its packages, such as "3 of 25:
// ", or "".
func place(s v1alpha1.TransactionStatus) string {
	for word := range strings.FieldsSeq(s.Message) {
		i := slices.IndexFunc(s.Packages, func(p v1alpha1.ChangedPackage) bool {
			return v1.ObjectName(p.Kind, p.Name) == strings.TrimRight(word, ":,")
		})
		if i >= 0 && len(s.Packages) > 1 {
			return fmt.Sprintf("%d of %d: ", i+1, len(s.Packages))
		}
	}
	return ""
}

// Waits is the error of a transaction that a command does not wait for: it may start later, needs approvals, or is only
// watched.
type Waits struct{ Transaction *v1alpha1.Transaction }

// Error returns what the transaction waits for.
func (w *Waits) Error() string {
	return "transaction/" + w.Transaction.Name + " " + w.Transaction.Status.Message
}

// Command returns the command that shows the state of the transaction.
func (w *Waits) Command() string {
	return "kubectl get transactions." + v1alpha1.Group + " " + w.Transaction.Name + " --watch"
}

// isLeft reports whether the command ends before the transaction.
func (o Operation) isLeft(t *v1alpha1.Transaction) bool {
	return t.AwaitsPolicy() || o.Wait == 0 && t.Status.Phase == v1alpha1.Watching && t.Status.Policy.WatchTime() > 0
}

// Follow waits until a transaction has ended, and reports its progress. It returns the packages with their results, or
// the failure of the transaction. The end of ctx ends the wait alone. A transaction that waits for the ChangePolicy is
// the error [Waits].
func (o Operation) Follow(ctx context.Context, t *v1alpha1.Transaction) ([]*Done, error) {
	progress := o.Progress()
	defer progress.End()
	limit := time.NewTimer(o.Wait + idleTime)
	defer limit.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for began := time.Now(); !t.Status.Phase.IsFinal(); {
		if o.isLeft(t) {
			return nil, &Waits{Transaction: t}
		}
		switch {
		case time.Since(began) < quietTime:
		case t.Status.Phase == v1alpha1.Returning:
			progress.Set("returning the packages: %s", t.Status.Message)
		case t.Status.Message != "":
			progress.Set("%s%s", place(t.Status), t.Status.Message)
		case !progress.IsSet():
			progress.Set("waiting for the manager to start the transaction %s", t.Name)
		}
		select {
		case <-ctx.Done():
			return nil, errcode.ErrInterrupted.New(nil, "stopped waiting for the transaction %s", t.Name).
				WithDo("The manager continues it. Run the same command again to wait for it, or see `%s`.", describeTransaction(t))
		case <-limit.C:
			return nil, ErrWait.New(errors.New(t.Status.Message), "the transaction %s has not ended", t.Name).
				WithDo(
					"The manager continues it when it can: see `%s`, and whether the manager runs, with `xpkg doctor`.",
					describeTransaction(t),
				)
		case <-tick.C:
		}
		now := &v1alpha1.Transaction{}
		switch err := o.Client.Get(ctx, client.ObjectKeyFromObject(t), now); {
		case err == nil:
			if now.ResourceVersion != t.ResourceVersion {
				limit.Reset(o.Wait + idleTime + now.Status.Policy.WatchTime())
			}
			t = now
		case apierrors.IsNotFound(err):
			return nil, ErrWait.New(nil, "another client has deleted the transaction %s", t.Name).
				WithDo("See the packages with `xpkg list`.")
		case apierrors.IsForbidden(err):
			return nil, transactionError(err, "read the transaction "+t.Name)
		}
	}
	progress.End()
	for _, note := range t.Status.Notes {
		o.Note("%s", note)
	}
	if t.Status.Phase != v1alpha1.Succeeded {
		return nil, FailureOf(t.Status)
	}
	var outage outage
	for {
		done, err := o.results(ctx, t)
		if err == nil {
			return done, FailureOf(t.Status)
		}
		if !outage.tolerates(err) || ctx.Err() != nil {
			return nil, err
		}
		<-tick.C
	}
}

// results returns the packages of a transaction that has succeeded, as they are now.
func (o Operation) results(ctx context.Context, t *v1alpha1.Transaction) ([]*Done, error) {
	var out []*Done
	for _, c := range t.Status.Packages {
		live, err := inventory.Get(ctx, o.Client, c.Kind, c.Name)
		if err != nil {
			return nil, err
		}
		if live == nil {
			live = emptyPackage(c.PackageName)
			live.PackageSpec().Package = c.Package
		}
		out = append(out, &Done{Step: &Step{Live: live, Remove: c.Package == ""}, Object: live, Word: c.Result})
	}
	return out, nil
}

func describeTransaction(t *v1alpha1.Transaction) string {
	return "kubectl get transactions." + v1alpha1.Group + " " + t.Name + " -o yaml"
}
