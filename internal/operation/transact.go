package operation

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// LabelCommand with the value "true" marks the transactions that commands have created. The manager deletes the oldest of them that have
// ended, beyond a hundred.
const LabelCommand = "xpkg.dev/command"

// returnTime is the time after the deadline of a transaction in which the manager returns the packages.
const returnTime = 5 * time.Minute

// Run carries out the steps: by writing the packages, or as a transaction of the manager if the operation is atomic. It follows a transaction
// that makes the same changes already.
func (o Operation) Run(ctx context.Context, steps []*Step) ([]*Done, error) {
	t, err := o.Unfinished(ctx, steps)
	switch {
	case err != nil:
		return nil, err
	case t != nil:
	case !o.Atomic || !slices.ContainsFunc(steps, func(s *Step) bool { return !s.Same }):
		return o.CarryOut(ctx, steps)
	default:
		if t, err = o.createTransaction(ctx, steps); err != nil {
			return nil, err
		}
	}
	return o.Follow(ctx, t)
}

// createTransaction creates the transaction of steps.
func (o Operation) createTransaction(ctx context.Context, steps []*Step) (*v1alpha1.Transaction, error) {
	spec, err := NewTransaction(steps)
	if err != nil {
		return nil, err
	}
	spec.OnFailure, spec.Deadline = v1alpha1.Return, &metav1.Duration{Duration: o.Wait}
	t := &v1alpha1.Transaction{
		ObjectMeta: metav1.ObjectMeta{Name: "xpkg-" + strings.ToLower(rand.Text()[:10]), Labels: map[string]string{LabelCommand: "true"}}, Spec: spec,
	}
	err = o.Client.Create(ctx, t, client.FieldOwner(plan.FieldManager))
	if err != nil && o.Client.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(t), t) == nil {
		return t, nil // The connection ended before the response.
	}
	return t, transactionError(err, "create a transaction")
}

// transactionError returns the error of a request for transactions.
func transactionError(err error, what string) error {
	switch {
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return ErrNoTransactions.New(nil, "the package manager of this cluster carries out no transactions")
	case apierrors.IsForbidden(err):
		failed := errcode.From(apiserver.Classify(err, "%s", what))
		return failed.WithDo("%s Or repeat the command without --atomic.", failed.Do)
	}
	return apiserver.Classify(err, "%s", what)
}

// Unfinished returns a transaction that has not ended and makes the changes of steps, or nil: the one of a command that was stopped.
func (o Operation) Unfinished(ctx context.Context, steps []*Step) (*v1alpha1.Transaction, error) {
	if !o.Atomic {
		return nil, nil
	}
	var list v1alpha1.TransactionList
	if err := o.Client.List(ctx, &list); err != nil {
		return nil, transactionError(err, "list transactions")
	}
	for i := range list.Items {
		if t := &list.Items[i]; !t.Status.Phase.IsFinal() && makes(t.Spec, steps) {
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
			found = slices.ContainsFunc(spec.Remove, func(r v1alpha1.RemovedPackage) bool { return r.PackageName == nameOf(s.Live) })
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

// Follow waits until a transaction has ended, and reports its progress. It returns the packages with their results, or the failure of the
// transaction. The end of ctx ends the wait alone.
func (o Operation) Follow(ctx context.Context, t *v1alpha1.Transaction) ([]*Done, error) {
	progress := o.Progress()
	defer progress.End()
	limit := time.NewTimer(o.Wait + returnTime)
	defer limit.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !t.Status.Phase.IsFinal() {
		switch {
		case t.Status.Message != "":
			progress.Set("%s", t.Status.Message)
		case !progress.IsSet():
			progress.Set("waiting for the manager to start the transaction %s", t.Name)
		}
		select {
		case <-ctx.Done():
			return nil, errcode.ErrInterrupted.New(nil, "stopped waiting for the transaction %s", t.Name).
				WithDo("The manager continues it. Run the same command again to wait for it, or see `%s`.", describeTransaction(t))
		case <-limit.C:
			return nil, ErrWait.New(errors.New(t.Status.Message), "the transaction %s has not ended", t.Name).
				WithDo("The manager continues it when it can: see `%s`, and whether the manager runs, with `xpkg doctor`.", describeTransaction(t))
		case <-tick.C:
		}
		now := &v1alpha1.Transaction{}
		switch err := o.Client.Get(ctx, client.ObjectKeyFromObject(t), now); {
		case err == nil:
			t = now
		case apierrors.IsNotFound(err):
			return nil, ErrWait.New(nil, "another client has deleted the transaction %s", t.Name).WithDo("See the packages with `xpkg list`.")
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
