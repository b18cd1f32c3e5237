package operation

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// unchanging is a cluster in which nothing happens.
type unchanging struct{ client.Client }

// Get implements client.Reader.
func (unchanging) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// A package is not ready before the packages that it requires are healthy.
func TestWaitIncludesDependencies(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	shop, mail := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "mail"}}
	shop.Spec.Package, shop.Status.CurrentRevision = "registry.example.com/shop:v1", "shop-1"
	mail.Spec.Package = "registry.example.com/mail:v1"
	shop.SetConditions(metav1.Time{}, v1.Healthy())
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}, Packages: []v1beta1.LockPackage{{
		Name: "shop-1", Source: "registry.example.com/shop", Version: "v1",
		Dependencies: []v1beta1.Dependency{{Package: "registry.example.com/mail"}},
	}}}
	for _, healthy := range []bool{true, false} {
		mail.SetConditions(metav1.Time{}, v1.Healthy())
		if !healthy {
			mail.SetConditions(metav1.Time{}, v1.Unhealthy("exited with code 3"))
		}
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shop, mail, lock).Build()
		// The time ends after the first check, however long that takes.
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := waitHealthy(ctx, cluster, shop.DeepCopy(), noProgress{})
			if healthy != (err == nil) || !healthy &&
				(!errors.Is(err, ErrWait) || !strings.Contains(err.Error(), "provider/mail is not healthy: exited with code 3")) {
				t.Errorf("with a dependency that is healthy (%t): %v", healthy, err)
			}
		})
	}
}

// A package is not ready while the packages that it requires are unknown, because the Lock does not contain it yet.
func TestWaitForTheLock(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "mail"}}
	p.Spec.Package, p.Status.CurrentRevision = "registry.example.com/mail:v2", "mail-2"
	p.SetConditions(metav1.Time{}, v1.Healthy())
	entry := func(revision, version string) *v1beta1.Lock {
		return &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}, Packages: []v1beta1.LockPackage{
			{Name: revision, Source: "registry.example.com/mail", Version: version},
		}}
	}
	inactive := p.DeepCopy()
	inactive.SetConditions(metav1.Time{}, v1.Condition{
		Type: v1.TypeInstalled, Status: corev1.ConditionFalse, Reason: v1.ReasonInactive,
		Message: "mail-2 waits for its activation",
	})
	for name, tc := range map[string]struct {
		p     *v1.Provider
		lock  *v1beta1.Lock
		ready bool
	}{
		"NoEntry":            {p, &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}}, false},
		"OfThePastRevision":  {p, entry("mail-1", "v1"), false},
		"OfTheRevision":      {p, entry("mail-2", "v2"), true},
		"AwaitingActivation": {inactive, entry("mail-1", "v1"), true},
	} {
		health, err := checkHealth(
			t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.p, tc.lock).Build(), tc.p,
		)
		if err != nil || health.ready != tc.ready || !tc.ready && !strings.Contains(health.message, "to the Lock") {
			t.Errorf("%s: %+v, %v", name, health, err)
		}
	}
}

// ending is a cluster whose last read of packages fails because the time of a wait has passed.
type ending struct {
	client.Client
	lists int
	end   context.CancelFunc
}

// An expiring context reports that its time has passed when it is canceled.
type expiring struct{ context.Context }

// Err implements context.Context.
func (e expiring) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// List implements client.Reader.
func (e *ending) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v1.ProviderList); ok {
		if e.lists++; e.lists > 1 {
			e.end()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.Client.List(ctx, list, opts...)
}

// A wait whose time ends during a check reports what the check before found: the dependency that is not healthy, with
// the advice for its runtime.
func TestWaitReportsTheLastCompleteCheck(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	shop, mail := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "mail"}}
	shop.Spec.Package, shop.Status.CurrentRevision = "registry.example.com/shop:v1", "shop-1"
	mail.Spec.Package, mail.Status.CurrentRevision, mail.Status.LastHealthyRevision = "registry.example.com/mail:v2",
		"mail-2", "mail-1"
	shop.SetConditions(metav1.Time{}, v1.Healthy())
	mail.SetConditions(metav1.Time{}, v1.Unhealthy("its readiness probe fails"), v1.Condition{
		Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: v1.ConditionReason(runtime.ReasonNotServing),
	})
	lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName}, Packages: []v1beta1.LockPackage{{
		Name: "shop-1", Source: "registry.example.com/shop", Version: "v1",
		Dependencies: []v1beta1.Dependency{{Package: "registry.example.com/mail"}},
	}}}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	cluster := &ending{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(shop, mail, lock).Build(), end: end}
	f := errcode.From(waitHealthy(expiring{ctx}, cluster, shop.DeepCopy(), noProgress{}))
	want := "configuration/shop is not healthy: its dependency provider/mail is not healthy: its readiness probe fails"
	if f.Code.Name != ErrWait.Name || f.Error() != want || !strings.Contains(f.Do, "`xpkg logs provider/mail`") ||
		!strings.Contains(f.Do, "`xpkg rollback provider/mail`") {
		t.Errorf("%s: %s\n%s", f.Code.Name, f.Error(), f.Do)
	}
}

// Ctrl-C during --wait is an interruption, and not a package that is not healthy in time.
//
// hardening: L3
func TestCtrlCEndsAWaitAsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := waitHealthy(ctx, unchanging{}, v1.NewPackage("Provider"), noProgress{})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrWait) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := waitHealthy(expired, unchanging{}, v1.NewPackage("Provider"), noProgress{}); !errors.Is(err, ErrWait) {
		t.Errorf("got %v, want %s", err, ErrWait.Name)
	}
}

// The error of an interrupted command states that the manager continues.
func TestInterruptedWaitSaysWhatContinues(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := v1.NewPackage("Provider")
	p.SetName("boats")
	waited := engineOf(unchanging{}, io.Discard).waitInstalled(ctx, p, time.Minute, true)
	if !errors.Is(waited, errcode.ErrInterrupted) ||
		!strings.Contains(errcode.From(waited).Do, "The manager continues; `xpkg describe provider/boats`") {
		t.Errorf("got %v (%s)", waited, errcode.From(waited).Do)
	}
	if several := errcode.From(adviseList(waited, 24)).Do; !strings.HasSuffix(
		several, " The command has written 24 other packages: `xpkg list --watch` shows all of them.",
	) {
		t.Errorf("got %s", several)
	}
}

// withoutResources plans the uninstall of a package without custom resources.
func withoutResources(context.Context, *change) (*planner.Plan, error) {
	return &planner.Plan{}, nil
}

// An atomic command that fails keeps new packages with custom resources, and with those that cannot be counted.
func TestAtomicCommandsKeepCustomResources(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	newPackage := func(name string) v1.Package { return named(v1.ProviderKind, name) }
	used, unknown, empty, gone := newPackage("used"), newPackage("unknown"), newPackage("empty"), newPackage("gone")
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(used, unknown, empty).Build()
	uninstall := func(_ context.Context, c *change) (*planner.Plan, error) {
		switch c.after.GetName() {
		case "used":
			return &planner.Plan{CustomResources: []planner.CustomResources{{CRD: "boats.a.test", Count: 1}}}, nil
		case "unknown":
			return &planner.Plan{CustomResources: []planner.CustomResources{{
				CRD: "boats.a.test", Unknown: "they may not be listed",
			}}}, nil
		case "gone":
			return nil, planner.ErrNotInstalled.New(nil, "there is no provider gone")
		}
		return &planner.Plan{}, nil
	}
	undo := func(changes ...*change) string {
		return errcode.From(undone(t, cluster, uninstall, ErrWait.New(nil, "it is not healthy"), changes...)).Do
	}
	const stays = "New packages with custom resources or dependents stay: provider/unknown, provider/used; to delete them together, run `xpkg uninstall provider/unknown provider/used`. "
	if got := undo(&change{after: used}, &change{after: unknown}); got != "Correct the cause above and try again. "+stays+
		"Nothing was undone." {
		t.Errorf("got %s", got)
	}
	got := undo(&change{after: used}, &change{after: empty}, &change{after: unknown}, &change{after: gone})
	if got != "Correct the cause above and try again. "+stays+
		"All other changes were undone: provider/empty was deleted." {
		t.Errorf("got %s", got)
	}
	if got := undo(&change{after: gone}); strings.Contains(got, "undone") {
		t.Errorf("of a package that the wait has deleted again: %s", got)
	}
	for _, p := range []v1.Package{used, unknown, empty} {
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), v1.NewPackage("Provider"))
		if (err == nil) != (p != empty) {
			t.Errorf("%s: %v", p.GetName(), err)
		}
	}
}

// The advice that several packages have in common is printed once; the fact of each package is always printed.
func TestNotesOfSeveralPackagesShareTheirAdvice(t *testing.T) {
	var printed strings.Builder
	outcome := engineOf(nil, &printed).outcomesOfWait()
	for _, name := range []string{"a", "b"} {
		p := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.ConfigurationKind))
		ready := v1.Healthy()
		ready.Type, ready.Message = v1.TypeReady, "The XRD of "+name+" is not established. Install Crossplane core."
		p.SetConditions(metav1.Time{}, v1.Healthy(), ready)
		if got := outcome(p); got != "healthy" {
			t.Errorf("%s is %s", name, got)
		}
	}
	want := "note: configuration/a: The XRD of a is not established. Install Crossplane core.\nnote: configuration/b: The XRD of b is not established.\n"
	if printed.String() != want {
		t.Errorf("got\n%swant\n%s", printed.String(), want)
	}
}

// The error of a package whose runtime fails names the log, and the command that brings back the version that worked.
func TestTheErrorOfAFailingRuntimeNamesTheLogAndTheRollback(t *testing.T) {
	for reason, want := range map[v1.ConditionReason]string{
		v1.ConditionReason(
			runtime.ReasonCrashLoop,
		): "Read the log of its runtime with `xpkg logs provider/tide`. The manager rolls back to tide-1 at the activation deadline; `xpkg rollback provider/tide` does so at once.",
		"NoProvider": ErrWait.Fix,
	} {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "tide"}}
		p.Status.CurrentRevision, p.Status.LastHealthyRevision = "tide-2", "tide-1"
		p.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: reason})
		if do := errcode.From(adviseRuntime(p, ErrWait.New(nil, "it is not healthy"))).Do; do != want {
			t.Errorf("%s: %s", reason, do)
		}
	}
}

// A wait for a package that another client has deleted, or is deleting, ends at once.
func TestWaitForADeletedPackage(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	deleting := v1.NewPackage("Provider")
	deleting.SetName("deleting")
	deleting.SetFinalizers([]string{v1.FinalizerRuntimeProtection})
	now := metav1.Now()
	deleting.SetDeletionTimestamp(&now)
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deleting).Build()
	for name, want := range map[string]errcode.Code{
		"deleted": inventory.ErrPackageNotFound, "deleting": inventory.ErrDeleting,
	} {
		p := v1.NewPackage("Provider")
		p.SetName(name)
		if err := engineOf(cluster, io.Discard).waitInstalled(t.Context(), p, time.Hour, false); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %s", name, err, want.Name)
		}
	}
}

// The undoing of an install deletes the package that the transaction has created, but not if another client has changed
// it, has applied it without a change, or has left it as it is because it wants it so.
func TestUndoKeepsPackagesOfOthers(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	written := func(manager, subresource string) func(v1.Package) {
		return func(p v1.Package) {
			now := metav1.Now()
			p.SetManagedFields(append(p.GetManagedFields(), metav1.ManagedFieldsEntry{
				Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1.GroupVersion.String(),
				Subresource: subresource, Time: &now,
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
			}))
		}
	}
	for name, tc := range map[string]struct {
		meanwhile func(v1.Package)
		stays     bool
	}{
		"created":                  {func(v1.Package) {}, false},
		"reconciled":               {written(plan.FieldManager, ""), false},
		"status of another client": {written("monitor", "status"), false},
		"changed":                  {func(p v1.Package) { p.SetGeneration(2) }, true},
		"replaced":                 {func(p v1.Package) { p.SetUID("b") }, true},
		"written again": {
			func(p v1.Package) { p.SetAnnotations(map[string]string{revision.AnnotationTransaction: "two"}) }, true,
		},
		"applied": {written("kubectl", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			created := named(v1.ProviderKind, "boats")
			created.SetUID("a")
			created.SetGeneration(1)
			revision.SetTransaction(created, "one")
			live := created.DeepCopyObject().(v1.Package)
			tc.meanwhile(live)
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(live).Build()
			undone, err := (&change{after: created, transaction: "one"}).tryUndo(t.Context(), cluster)
			exists := cluster.Get(t.Context(), client.ObjectKeyFromObject(live), v1.NewPackage("Provider")) == nil
			if err != nil || exists != tc.stays || undone == tc.stays {
				t.Errorf("exists %t, undone %t: %v", exists, undone, err)
			}
		})
	}
}

// An atomic command that fails keeps new packages that a package requires which it does not undo.
func TestAtomicCommandsKeepDependencies(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	newPackage := func(name string) v1.Package { return named(v1.ProviderKind, name) }
	base, own, kept := newPackage("base"), newPackage("own"), newPackage("kept")
	for _, tc := range []struct {
		name      string
		dependent string
		stays     bool
	}{
		{"own", "own", false},
		{"kept", "kept", true},
		{"other", "other", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				newPackage("base"), newPackage("own"), newPackage("kept"),
			).Build()
			uninstall := func(_ context.Context, c *change) (*planner.Plan, error) {
				switch c.after.GetName() {
				case "base":
					return &planner.Plan{Breaks: []planner.Broken{{Kind: "Provider", Name: tc.dependent}}}, nil
				case "kept":
					return &planner.Plan{CustomResources: []planner.CustomResources{{CRD: "boats.a.test", Count: 1}}}, nil
				}
				return &planner.Plan{}, nil
			}
			changes := []*change{{after: base}, {after: own}, {after: kept}}
			failed := undone(t, cluster, uninstall, ErrWait.New(nil, "it is not healthy"), changes...)
			err := cluster.Get(t.Context(), client.ObjectKeyFromObject(base), v1.NewPackage("Provider"))
			if do := errcode.From(failed).Do; (err == nil) != tc.stays || !strings.Contains(do, "provider/own was deleted") {
				t.Errorf("exists %t: %s", err == nil, do)
			}
		})
	}
}

// An atomic command that fails keeps a new version that a package requires which it does not undo.
func TestAtomicCommandsKeepRequiredVersions(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name, version string) v1.Package {
		p := named(v1.ProviderKind, name)
		p.SetGeneration(2)
		p.PackageSpec().Package = "registry.test/" + name + ":" + version
		return p
	}
	for _, tc := range []struct{ name, dependent, version, stays string }{
		{"required by the same command", "own", "v1", ""},
		{"required by another client", "other", "v2", "Packages stay at the new version that other packages require now: provider/base; see `xpkg tree`."},
		{"not required", "", "v1", ""},
		{"not known", "?", "v1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(at("base", "v2"), at("own", "v2")).Build()
			planUndo := func(_ context.Context, c *change) (*planner.Plan, error) {
				if c.after.GetName() != "base" || tc.dependent == "" {
					return &planner.Plan{}, nil
				}
				if tc.dependent == "?" {
					return nil, errors.New("the registry does not respond")
				}
				return &planner.Plan{Breaks: []planner.Broken{{Kind: "Provider", Name: tc.dependent}}}, nil
			}
			changes := []*change{{before: at("base", "v1"), after: at("base", "v2")}, {
				before: at("own", "v1"), after: at("own", "v2"),
			}}
			do := errcode.From(undone(t, cluster, planUndo, ErrWait.New(nil, "it is not healthy"), changes...)).Do
			base := v1.NewPackage("Provider")
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(at("base", "")), base); err != nil {
				t.Fatal(err)
			}
			if got := base.PackageSpec().Package; got != at("base", tc.version).PackageSpec().Package ||
				!strings.Contains(do, tc.stays) || !strings.Contains(do, "provider/own was returned") {
				t.Errorf("%s: %s", got, do)
			}
		})
	}
}

// An atomic command that fails undoes its own changes, and keeps those that other clients have made meanwhile.
func TestAtomicCommandsKeepChangesOfOthers(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name, version string) v1.Package {
		p := v1.NewPackage("Provider")
		p.SetName(name)
		p.SetGeneration(2)
		p.PackageSpec().Package = "registry.test/" + name + ":" + version
		return p
	}
	own, changed, added := at("own", "v2"), at("changed", "v3"), at("added", "v3")
	explicit, dependency := at("explicit", "v2"), at("explicit", "v2")
	dependency.SetLabels(map[string]string{graph.LabelAutoInstalled: "true"})
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(own, changed, added, explicit).Build()
	earlier := func(p v1.Package) v1.Package { p.SetGeneration(0); return p }
	changes := []*change{
		{before: at("own", "v1"), after: at("own", "v2")},
		{before: earlier(at("changed", "v1")), after: at("changed", "v2")},
		{before: at("deleted", "v1"), after: at("deleted", "v2")},
		{after: earlier(at("added", "v2"))},
		{after: dependency, transaction: "x"},
	}
	got := errcode.From(undone(t, cluster, withoutResources, ErrWait.New(nil, "it is not healthy"), changes...)).Do
	const want = "Correct the cause above and try again. Packages that another client has changed or deleted meanwhile were left as they are: " +
		"provider/explicit, provider/added, provider/deleted, provider/changed. All other changes were undone: provider/own was returned to registry.test/own:v1. " +
		"CRDs that only the new version of a returned package contains stay, with their custom resources."
	if got != want {
		t.Errorf("got %s", got)
	}
	for name, version := range map[string]string{"own": "v1", "changed": "v3", "added": "v3", "explicit": "v2"} {
		p := v1.NewPackage("Provider")
		if err := cluster.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil ||
			!strings.HasSuffix(p.PackageSpec().Package, version) {
			t.Errorf("%s: %s, %v", name, p.PackageSpec().Package, err)
		}
	}
}

// A paused package does not become healthy again before a user resumes it, so an undo does not wait for it: it reads
// nothing.
func TestAnUndoDoesNotWaitForPausedPackages(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", Annotations: map[string]string{
		v1.AnnotationPaused: "true",
	}}}
	p.SetConditions(metav1.Time{}, v1.Healthy())
	if got := engineOf(nil, io.Discard).notHealthyAgain(t.Context(), []*change{{before: p, after: p}}); got != "" {
		t.Errorf("got %q", got)
	}
}

// After a failed runtime was undone, the advice states how to read its log, which a cluster does not keep.
func TestAnUndoNamesTheLogOfTheRuntime(t *testing.T) {
	failed := func(reason string) v1.Package {
		p := named(v1.ProviderKind, "boats")
		p.PackageStatus().CurrentRevision = "boats-2"
		p.SetConditions(metav1.Time{}, v1.Condition{
			Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: v1.ConditionReason(reason),
		})
		return p
	}
	crashed := failed(runtime.ReasonCrashLoop)
	for want, c := range map[string]*change{
		"Correct the cause above and try again. ": {before: crashed, after: failed("NotFound")},
		"Repeat the command without --atomic to keep the runtime, and read its log with `xpkg logs provider/boats`. ": {
			after: crashed,
		},
		"The cause is in the log of boats-2: on a control plane of `xpkg up`, read it with `xpkg logs boats-2`; in a cluster, repeat the command without --atomic to keep the runtime. ": {
			before: crashed, after: crashed,
		},
	} {
		if got := adviseCause([]*change{c}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// If the undoing of a change fails, the error names the changes that were undone before, and those that were not.
func TestAtomicCommandsNameWhatTheyCouldNotUndo(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	newPackage := func(name string) v1.Package {
		p := v1.NewPackage("Provider")
		p.SetName(name)
		return p
	}
	refused := interceptor.Funcs{Delete: func(
		ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption,
	) error {
		if o.GetName() == "second" {
			return apierrors.NewForbidden(schema.GroupResource{}, "second", errors.New("the policy forbids it"))
		}
		return c.Delete(ctx, o, opts...)
	}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		newPackage("first"), newPackage("second"), newPackage("third"),
	).WithInterceptorFuncs(refused).Build()
	changes := []*change{{after: newPackage("first")}, {after: newPackage("second")}, {after: newPackage("third")}}
	failed := errcode.From(undone(t, cluster, withoutResources, ErrWait.New(nil, "it is not healthy"), changes...))
	if !errors.Is(failed, ErrWait) || strings.Contains(failed.Error(), "policy") ||
		!strings.Contains(
			failed.Do,
			"the policy forbids it. Undone before: provider/third was deleted. Not undone: provider/first, provider/second; see `xpkg describe provider/second`.",
		) {
		t.Errorf("%v\n%s", failed, failed.Do)
	}
}
