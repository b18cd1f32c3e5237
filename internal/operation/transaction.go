package operation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// NewTransaction returns the spec of a transaction with the changes of steps, which apply to the packages as they were
// read. Steps that change nothing are part of it: their packages must be as they are.
func NewTransaction(steps []*Step) (v1alpha1.TransactionSpec, error) {
	out := v1alpha1.TransactionSpec{Packages: []v1alpha1.WantedPackage{}, Remove: []v1alpha1.RemovedPackage{}}
	plans := Plans(steps)
	isUnplanned := false // The manager can have access to the content.
	for _, s := range steps {
		isUnplanned = isUnplanned || s.Plan == nil && !s.Same
		if s.Remove {
			out.Remove = append(out.Remove, v1alpha1.RemovedPackage{
				PackageName: nameOf(s.Live), Expected: expectedOf(s.Live), OnDelete: s.answer().String(),
			})
			continue
		}
		want := s.Want
		switch {
		case s.Same:
			want = s.Live
		case s.Plan != nil:
			var err error
			if want, err = s.Plan.Wanted(); err != nil {
				return out, err
			}
			if len(s.Plan.Adoptions) > 0 {
				revision.AllowAdoption(want, s.Plan.Adoptions)
			}
		}
		w := v1alpha1.WantedPackage{
			PackageName: nameOf(want), Spec: inventory.SpecOf(want), RollsBack: s.RollsBack, Expected: expectedOf(s.Live),
		}
		former := emptyPackage(w.PackageName)
		if s.Live != nil {
			former = s.Live
		}
		w.Labels = different(want.GetLabels(), former.GetLabels(), graph.LabelAutoInstalled)
		kept := []string{graph.AnnotationRequiredBy}
		if s.Live != nil && !isFrom(s.Live, w.Spec.Package) {
			kept = append(kept, consentKeys()...)
		}
		w.Annotations = different(want.GetAnnotations(), former.GetAnnotations(), kept...)
		delete(w.Annotations, revision.AnnotationTransaction)
		out.Packages = append(out.Packages, w)
	}
	if !isUnplanned {
		out.Plan = planner.Agreement(plans)
	}
	return out, nil
}

// DeclarativeTransaction returns the transaction with the packages of the steps of a lock file as they shall be, from
// any state, for a tool that applies it again and again. Its name is derived from its spec.
func DeclarativeTransaction(steps []*Step) *v1alpha1.Transaction {
	t := &v1alpha1.Transaction{}
	t.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Transaction"))
	t.Spec.OnFailure = v1alpha1.Return
	for _, s := range steps {
		if s.Remove {
			t.Spec.Remove = append(t.Spec.Remove, v1alpha1.RemovedPackage{PackageName: nameOf(s.Live)})
			continue
		}
		p := emptyPackage(nameOf(s.Want))
		if s.requiredBy != nil {
			graph.SetRequiredBy(p, s.requiredBy)
		}
		graph.SetKindProviders(p, kindProviders(*s.Locked))
		t.Spec.Packages = append(t.Spec.Packages, v1alpha1.WantedPackage{
			PackageName: nameOf(p), Annotations: p.GetAnnotations(), Spec: inventory.SpecOf(s.Want),
		})
	}
	const shown = 12
	t.Name = "sync-" + strings.TrimPrefix(planner.DigestOf(t.Spec), "sha256:")[:shown]
	return t
}

// different returns the entries that differ from the former ones, and those that are always kept. A consent that a
// package has already needs no permission.
func different(now, former map[string]string, kept ...string) map[string]string {
	out := maps.Clone(now)
	maps.DeleteFunc(out, func(key, value string) bool {
		was, ok := former[key]
		return ok && was == value && !slices.Contains(kept, key)
	})
	return out
}

// Changed returns the packages that steps change.
func Changed(steps []*Step) []v1alpha1.PackageName {
	var out []v1alpha1.PackageName
	for _, s := range steps {
		if !s.Same {
			out = append(out, nameOf(s.Subject()))
		}
	}
	return out
}

func nameOf(p v1.Package) v1alpha1.PackageName {
	return v1alpha1.PackageName{Kind: p.PackageKind(), Name: p.GetName()}
}

// expectedOf returns the state of a package, which is nil if it does not exist.
func expectedOf(live v1.Package) v1alpha1.Expected {
	if live == nil {
		return v1alpha1.Expected{UID: v1alpha1.NoPackage}
	}
	out := v1alpha1.Expected{UID: live.GetUID(), Generation: live.GetGeneration()}
	if live.PackageKind() == v1.ProviderKind {
		out.Kinds = activation.Wish(live.GetAnnotations())
	}
	return out
}

// TransactionDeadline is the default of the deadline of a transaction.
const TransactionDeadline = 5 * time.Minute

// FailureOf returns the failure in the status of a transaction, or nil.
func FailureOf(s v1alpha1.TransactionStatus) error {
	if s.Reason == "" {
		return nil
	}
	code, known := codeNamed(s.Reason)
	if !known {
		code = errcode.Unknown
	}
	return code.New(nil, "%s", s.Message).WithDo("%s", s.Advice)
}

// TransactionSteps returns the steps of a transaction for the installed packages. It fails with PlanMoved if a package
// is not in the expected state. For a transaction that has begun, the status lists the packages as they were before,
// and the steps that are carried out are marked.
func (e *Engine) TransactionSteps(
	ctx context.Context, all *inventory.Inventory, t *v1alpha1.Transaction,
) ([]*Step, error) {
	former := map[v1alpha1.PackageName]*v1alpha1.ChangedPackage{}
	for i := range t.Status.Packages {
		former[t.Status.Packages[i].PackageName] = &t.Status.Packages[i]
	}
	var out []*Step
	for _, w := range t.Spec.Packages {
		s := &Step{Live: all.Named(emptyPackage(w.PackageName)), RollsBack: w.RollsBack}
		isWritten := t.HasEndedWriting() || s.Live != nil && revision.TransactionOf(s.Live) == MarkOf(t)
		s.IsCarriedOut = former[w.PackageName] != nil && s.Live != nil && isWritten
		s.Want = wanted(w, s.Live)
		if err := cmp.Or(checkExpected(w.Expected, s), checkRepository(w, s)); err != nil {
			return nil, err
		}
		s.consents = consentsOf(s.Want, s.Live)
		s.Same = !s.IsCarriedOut && isWanted(s.Live, s.Want)
		s.markDependency = graph.IsUnmarkedDependency(s.Want)
		out = append(out, s)
	}
	var removed []v1.Package
	var gone []*Step
	answers := map[string]revision.OnDelete{} // by name
	for _, r := range t.Spec.Remove {
		live := all.Named(emptyPackage(r.PackageName))
		was := former[r.PackageName]
		switch {
		case was != nil && (live == nil || inventory.IsDeleting(live)):
			before := formerPackage(r.PackageName, was.Before)
			gone = append(gone, &Step{Live: before, Remove: true, IsCarriedOut: true})
			continue
		case live == nil:
			continue // It is removed already.
		}
		if err := checkExpected(r.Expected, &Step{Live: live, Remove: true}); err != nil {
			return nil, err
		}
		removed = append(removed, live)
		var answer revision.OnDelete
		if err := answer.UnmarshalText([]byte(r.OnDelete)); err != nil {
			return nil, err
		}
		answers[inventory.ShortName(live)] = answer
	}
	removals, err := e.RemovalSteps(ctx, all, removed)
	for _, s := range removals {
		s.OnDelete = answers[inventory.ShortName(s.Live)]
	}
	return slices.Concat(out, gone, removals), err
}

// checkExpected fails if the package of a step that is not carried out yet is not in the expected state.
func checkExpected(e v1alpha1.Expected, s *Step) error {
	if s.IsCarriedOut || e == (v1alpha1.Expected{}) {
		return nil
	}
	is := expectedOf(s.Live)
	if e.Generation == 0 {
		is.Generation = 0
	}
	if e.Kinds == "" {
		is.Kinds = ""
	}
	if e == is {
		return nil
	}
	return planner.ErrPlanMoved.New(
		nil, "%s has been changed, deleted or created since the change was planned", inventory.ShortName(s.Subject()),
	)
}

// consentKeys are the annotations with consents, which were given for the repository of a package.
func consentKeys() []string {
	return []string{webhooks.AnnotationAllowed, revision.AnnotationAdopt, revision.AnnotationAcceptBreaks}
}

// checkRepository fails if a transaction selects another repository for a package that has consents which the
// transaction does not name: the user might not be allowed to give them.
func checkRepository(w v1alpha1.WantedPackage, s *Step) error {
	if s.Live == nil || s.IsCarriedOut || isFrom(s.Live, w.Spec.Package) {
		return nil
	}
	for _, key := range consentKeys() {
		if s.Live.GetAnnotations()[key] != "" && w.Annotations[key] == "" {
			return ErrConsent.New(
				nil, "%s has consents in the annotation %s, which were given for the repository %s", inventory.ShortName(s.Live),
				key, inventory.RepositoryOf(s.Live),
			).
				WithDo("Remove them before you change the repository, or name them in the transaction.")
		}
	}
	return nil
}

// isFrom reports whether a reference has the repository of a package.
func isFrom(p v1.Package, reference string) bool {
	return inventory.RepositoryOf(p) == oci.RepositoryName(reference)
}

func emptyPackage(n v1alpha1.PackageName) v1.Package {
	p := v1.NewPackage(n.Kind)
	p.SetName(n.Name)
	return p
}

// wanted returns a package as a transaction wants it. A package without the label or the dependents of a dependency is
// installed explicitly, and one that a user has installed explicitly does not become a dependency.
func wanted(w v1alpha1.WantedPackage, live v1.Package) v1.Package {
	p := emptyPackage(w.PackageName)
	if live != nil {
		p = live.DeepCopyObject().(v1.Package)
	}
	setSpec(p, &v1.Provider{Spec: w.Spec})
	p.SetLabels(desired.Overlay(p.GetLabels(), w.Labels))
	p.SetAnnotations(desired.Overlay(p.GetAnnotations(), w.Annotations))
	isDependency := w.Labels[graph.LabelAutoInstalled] != "" || w.Annotations[graph.AnnotationRequiredBy] != ""
	if !isDependency || live != nil && !graph.IsAutoInstalled(live) && !graph.IsUnmarkedDependency(live) {
		graph.Adopt(p)
	}
	return p
}

// isWanted reports whether an installed package is as it is wanted.
func isWanted(live, want v1.Package) bool {
	return live != nil && equality.Semantic.DeepEqual(inventory.SpecOf(live), inventory.SpecOf(want)) &&
		maps.Equal(live.GetLabels(), want.GetLabels()) &&
		maps.Equal(live.GetAnnotations(), want.GetAnnotations())
}

// consentsOf returns the consents of a wanted package that the installed one does not have, and its choice of kinds.
func consentsOf(want, live v1.Package) map[string]string {
	var out map[string]string
	for _, key := range append(consentKeys(), activation.Annotations()...) {
		if value := want.GetAnnotations()[key]; live != nil && value != live.GetAnnotations()[key] {
			out = desired.Overlay(out, map[string]string{key: value})
		}
	}
	return out
}

// PlanTransaction plans the steps of a transaction. Packages that are as they are wanted need no plan.
func (o Operation) PlanTransaction(ctx context.Context, steps []*Step) error {
	if _, err := o.Plan(ctx, steps); err != nil {
		return err
	}
	for _, s := range steps {
		if s.Plan == nil || s.Remove {
			continue
		}
		if !s.Plan.WritesPackage() && len(s.consents) == 0 {
			s.Same, s.Plan = true, nil
		}
	}
	return nil
}

// Record returns the packages of planned steps as they are before the transaction.
func Record(steps []*Step) []v1alpha1.ChangedPackage {
	var out []v1alpha1.ChangedPackage
	for _, s := range steps {
		c := v1alpha1.ChangedPackage{PackageName: nameOf(s.Subject())}
		if !s.Remove {
			c.Package = s.Want.PackageSpec().Package
		} else if s.Plan != nil {
			c.Agreed = planner.Agreement([]*planner.Plan{s.Plan})
		}
		if p := s.Live; p != nil {
			c.Before = &v1alpha1.FormerPackage{
				UID: p.GetUID(), Generation: p.GetGeneration(),
				Healthy: p.GetCondition(v1.TypeHealthy).Status == corev1.ConditionTrue,
				Labels:  p.GetLabels(), Annotations: p.GetAnnotations(), Spec: inventory.SpecOf(p), Writers: writersOf(p),
			}
		}
		out = append(out, c)
	}
	return out
}

// CheckRecord fails if a removal that is planned again has other consequences than in the record, to which the user
// agreed.
func CheckRecord(record []v1alpha1.ChangedPackage, steps []*Step) error {
	for _, s := range steps {
		if !s.Remove || s.IsCarriedOut || s.Plan == nil {
			continue
		}
		for _, c := range record {
			if c.PackageName == nameOf(s.Live) && c.Agreed != planner.Agreement([]*planner.Plan{s.Plan}) {
				return planner.ErrPlanMoved.New(
					nil, "the removal of %s has other consequences than the plan that was agreed to", inventory.ShortName(s.Live),
				)
			}
		}
	}
	return nil
}

// writersOf returns the clients that have written a package, other than its status.
func writersOf(p v1.Package) []string {
	var out []string
	for _, e := range p.GetManagedFields() {
		if e.Subresource == "" && e.Time != nil {
			out = append(out, strings.Join([]string{string(e.Operation), e.Time.UTC().Format(time.RFC3339), e.Manager}, "/"))
		}
	}
	return out
}

// formerPackage returns the package of a record, or nil for one that did not exist.
func formerPackage(n v1alpha1.PackageName, f *v1alpha1.FormerPackage) v1.Package {
	if f == nil {
		return nil
	}
	p := emptyPackage(n)
	p.SetUID(f.UID)
	p.SetGeneration(f.Generation)
	p.SetLabels(maps.Clone(f.Labels))
	p.SetAnnotations(maps.Clone(f.Annotations))
	setSpec(p, &v1.Provider{Spec: f.Spec})
	if f.Healthy {
		p.SetConditions(metav1.Now(), v1.Healthy())
	}
	var writers []metav1.ManagedFieldsEntry
	for _, w := range f.Writers {
		parts := strings.SplitN(w, "/", 3)
		if at, err := time.Parse(time.RFC3339, parts[min(1, len(parts)-1)]); err == nil && len(parts) == 3 {
			writers = append(writers, metav1.ManagedFieldsEntry{
				Operation: metav1.ManagedFieldsOperationType(parts[0]), Time: &metav1.Time{Time: at}, Manager: parts[2],
			})
		}
	}
	p.SetManagedFields(writers)
	return p
}

// MarkOf returns the value of [revision.AnnotationTransaction] on the packages that a transaction has written. Another
// transaction can have the same name later.
func MarkOf(t *v1alpha1.Transaction) string { return t.Name + "/" + string(t.UID) }

// returned is the transaction of a package that a transaction has returned to its former state.
func returned(transaction string) string { return transaction + "/returned" }

// Return undoes the changes that a transaction has made, the last one first, and returns the error of the transaction
// with what was undone. It keeps new packages that have custom resources, or that another package requires, and new
// versions that another package requires: the user has not consented to these consequences. It keeps what another
// client has changed since. It can be repeated after a failure.
func (o Operation) Return(ctx context.Context, record []v1alpha1.ChangedPackage, why error) (complete bool, err error) {
	changes, before, err := o.changesOf(ctx, record)
	if err != nil {
		return false, err
	}
	return o.undoAll(ctx, o.planUndo, why, changes, before)
}

// undoAll undoes changes, and returns the error of the transaction with what was undone, now and before.
func (e *Engine) undoAll(
	ctx context.Context, plan planUndoFunc, why error, changes []*change, before undoing,
) (complete bool, err error) {
	result, err := e.undo(ctx, plan, changes)
	result.undone = slices.Concat(before.undone, result.undone)
	result.changed = slices.Concat(before.changed, result.changed)
	changes = slices.Concat(before.undone, changes)
	switch {
	case errors.Is(err, apiserver.ErrCluster), ctx.Err() != nil:
		return false, cmp.Or(ctx.Err(), err)
	case err != nil:
		return false, undoError(why, err, result.undone, changes)
	case len(result.undone)+len(result.kept)+len(result.required)+len(result.changed) == 0:
		return true, why
	}
	failed := result.advise(why, changes)
	return result.isComplete(), failed.WithDo("%s%s", failed.Do, e.notHealthyAgain(ctx, result.undone))
}

// changesOf returns the changes that a transaction has made, and those that it has returned already or that another
// client has changed since.
func (o Operation) changesOf(
	ctx context.Context, record []v1alpha1.ChangedPackage,
) (changes []*change, before undoing, err error) {
	for _, r := range record {
		live, err := inventory.Get(ctx, o.Client, r.Kind, r.Name)
		if err != nil {
			return nil, undoing{}, err
		}
		c := &change{before: formerPackage(r.PackageName, r.Before), after: live, transaction: o.Transaction}
		isSame := live != nil && c.before != nil && live.GetUID() == c.before.GetUID()
		switch {
		case r.Package == "" && (live == nil || inventory.IsDeleting(live)): // It was deleted.
			c.after = nil
			changes = append(changes, c)
		case live == nil && c.before == nil:
		case live == nil:
			before.changed = append(before.changed, c.named())
		case revision.TransactionOf(live) == returned(o.Transaction):
			if r.Package == "" {
				c.after = nil
			}
			before.undone = append(before.undone, c)
		case revision.TransactionOf(live) == o.Transaction:
			changes = append(changes, c)
		case !isSame || live.GetGeneration() != c.before.GetGeneration():
			before.changed = append(before.changed, c.named())
		}
	}
	return changes, before, nil
}
