package transactions

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// start starts the transaction, unless it waits for one that concerns the same packages, their dependents or their
// dependencies, and that precedes it.
func (r *run) start(ctx context.Context) (waits time.Duration, err error) {
	r.starts.Lock()
	defer r.starts.Unlock()
	all, err := inventory.LoadNamed(ctx, r.Client)
	if err != nil {
		return 0, err
	}
	holds := named(r.t.Spec)
	other, err := r.overlapping(ctx, all, holds)
	if err != nil {
		return 0, err
	}
	if other != "" {
		waits = requeue.Jitter(pause)
	}
	return waits, r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) {
		if other != "" {
			waitFor(other, s)
			return
		}
		if s.StartTime == nil {
			s.StartTime = new(metav1.Now())
		}
		if s.Phase != v1alpha1.Planning { // Otherwise the message is why the plan is made again.
			s.Message = "planning the change"
		}
		s.Phase, s.Holds = v1alpha1.Planning, holds
	})
}

// waitFor records that a transaction waits for another one. It has not started then.
func waitFor(other string, s *v1alpha1.TransactionStatus) {
	wait(s, nil, "waiting for the transaction "+other)
}

// wait records that a transaction waits, for the ChangePolicy if it asks something. It has not started then.
func wait(s *v1alpha1.TransactionStatus, asked *v1alpha1.AskedByPolicy, message string) {
	s.Phase, s.Message, s.StartTime, s.Holds, s.Policy = v1alpha1.Waiting, message, nil, nil, asked
}

// precedes reports whether a transaction is made before another one that concerns the same packages: one that writes,
// one that has started earlier, or one that was created earlier. The order of any transactions is total, so that they
// never wait for each other.
func precedes(o, t *v1alpha1.Transaction) bool {
	rank := func(t *v1alpha1.Transaction) int {
		switch {
		case t.Status.Phase == v1alpha1.Applying, t.Status.Phase == v1alpha1.Returning, t.Status.Phase == v1alpha1.Watching:
			return 0
		case t.Status.StartTime != nil:
			return 1
		}
		return 2
	}
	began := func(t *v1alpha1.Transaction) time.Time {
		if t.Status.StartTime != nil {
			return t.Status.StartTime.Time
		}
		return t.CreationTimestamp.Time
	}
	return cmp.Or(
		cmp.Compare(rank(o), rank(t)), began(o).Compare(began(t)), o.CreationTimestamp.Compare(t.CreationTimestamp.Time),
		cmp.Compare(o.Name, t.Name),
	) < 0
}

// named returns the packages that a transaction names, as Kind/name, and the repositories of those that it installs.
func named(spec v1alpha1.TransactionSpec) []string {
	out := map[string]bool{}
	for _, p := range spec.Packages {
		out[v1.ObjectName(p.Kind, p.Name)], out[oci.RepositoryName(p.Spec.Package)] = true, true
	}
	for _, p := range spec.Remove {
		out[v1.ObjectName(p.Kind, p.Name)] = true
	}
	return slices.Sorted(maps.Keys(out))
}

// overlapping returns the name of a transaction that precedes this one and has not ended, and that changes one of the
// packages, of their dependents or of their dependencies; or "".
func (r *run) overlapping(ctx context.Context, all *inventory.Inventory, changes []string) (string, error) {
	var list v1alpha1.TransactionList
	if err := r.Client.List(ctx, &list); err != nil {
		return "", err
	}
	concerned := related(all, changes)
	for i := range list.Items {
		o := &list.Items[i]
		if o.UID == r.t.UID || o.HasEndedWriting() || o.AwaitsPolicy() ||
			o.DeletionTimestamp != nil && o.Status.StartTime == nil ||
			!precedes(o, r.t) {
			continue
		}
		holds := o.Status.Holds
		if len(holds) == 0 {
			holds = named(o.Spec)
		}
		if slices.ContainsFunc(holds, func(name string) bool { return concerned[name] }) {
			return o.Name, nil
		}
	}
	return "", nil
}

// related returns the given packages, which are names or repositories, with their dependents and dependencies, direct
// or not.
func related(all *inventory.Inventory, changes []string) map[string]bool {
	requires, requiredBy := map[string][]string{}, map[string][]string{}
	name := map[string]string{} // by repository
	for _, p := range all.Packages {
		repository := inventory.RepositoryOf(p)
		name[repository] = v1.ObjectName(p.PackageKind(), p.GetName())
		for _, need := range all.Needs(p, p.PackageStatus().CurrentRevision) {
			requires[repository] = append(requires[repository], need.Package)
			requiredBy[need.Package] = append(requiredBy[need.Package], repository)
		}
	}
	out := map[string]bool{}
	for _, c := range changes {
		out[c] = true
	}
	for _, direction := range []map[string][]string{requires, requiredBy} {
		seen := map[string]bool{}
		var visit func(repository string)
		visit = func(repository string) {
			if seen[repository] {
				return
			}
			seen[repository], out[repository] = true, true
			if n := name[repository]; n != "" {
				out[n] = true
			}
			for _, next := range direction[repository] {
				visit(next)
			}
		}
		for _, p := range all.Packages {
			if repository := inventory.RepositoryOf(p); slices.Contains(changes, repository) ||
				slices.Contains(changes, name[repository]) {
				visit(repository)
			}
		}
	}
	return out
}

// steps returns the steps of the transaction for the packages that are installed now.
func (r *run) steps(ctx context.Context, o operation.Operation) ([]*operation.Step, error) {
	all, err := inventory.LoadNamed(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	return o.TransactionSteps(ctx, all, r.t)
}

// plan plans the transaction. It fails if the plan is refused, needs consent, or is not the one that was agreed to.
func (r *run) plan(ctx context.Context, o operation.Operation) ([]*operation.Step, error) {
	if err := r.Consents(ctx); err != nil {
		return nil, err
	}
	steps, err := r.steps(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := o.PlanTransaction(ctx, steps); err != nil {
		return nil, err
	}
	plans := operation.Plans(steps)
	for _, p := range plans {
		if err := p.AnswerError(); err != nil {
			return nil, err
		}
	}
	switch agreed := r.t.Spec.Plan; {
	case agreed == "":
		for _, p := range plans {
			if err := p.ConsentError(); err != nil {
				return nil, err
			}
		}
	case agreed != planner.Agreement(plans):
		return nil, planner.ErrPlanMoved.New(nil, "the change has other consequences than the plan that was agreed to").
			WithDo("Nothing was written. Plan the change again.")
	}
	return steps, o.Check(ctx, steps)
}

// begin records the packages before the first write, unless the plan changes further packages that another transaction
// holds, which precedes it, or the ChangePolicy lets the transaction wait.
func (r *run) begin(ctx context.Context, steps []*operation.Step) (waits time.Duration, err error) {
	r.starts.Lock()
	defer r.starts.Unlock()
	holds := slices.Clone(r.t.Status.Holds)
	for _, p := range operation.Plans(steps) {
		for _, a := range p.AddedPackages {
			holds = append(holds, oci.RepositoryName(a.Reference))
			if a.Name != "" {
				holds = append(holds, v1.ObjectName(a.Kind, a.Name))
			}
		}
	}
	slices.Sort(holds)
	holds = slices.Compact(holds)
	all, err := inventory.LoadNamed(ctx, r.Client)
	if err != nil {
		return 0, err
	}
	other, err := r.overlapping(ctx, all, holds)
	if err != nil {
		return 0, err
	}
	if other != "" {
		return requeue.Jitter(pause), r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) { waitFor(other, s) })
	}
	asked, err := r.ask(ctx, steps)
	if err != nil {
		return 0, err
	}
	message, waits := r.waitsFor(r.t, asked)
	return waits, r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) {
		if waits > 0 {
			wait(s, asked, message)
			return
		}
		s.Phase, s.Message, s.Holds, s.Packages = v1alpha1.Applying, "writing the packages", holds, operation.Record(steps)
		s.Policy = asked
	})
}

// save changes the status of a transaction.
func (r *Reconciler) save(
	ctx context.Context, t *v1alpha1.Transaction, change func(*v1alpha1.TransactionStatus),
) error {
	before := t.DeepCopy()
	if change(&t.Status); equality.Semantic.DeepEqual(before.Status, t.Status) {
		return nil
	}
	if t.HasEndedWriting() {
		defer r.Held.release(ctx, t.Name)
	}
	return r.Client.Status().Patch(ctx, t, client.MergeFrom(before), client.FieldOwner(plan.FieldManager))
}

// patch writes a merge patch.
func (r *Reconciler) patch(ctx context.Context, t *v1alpha1.Transaction, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, t, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(plan.FieldManager))
}
