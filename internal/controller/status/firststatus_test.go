package status

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// installing is a package of which a Reporter reports reconciliations at times that the test sets.
type installing struct {
	api      client.Client
	reporter *Reporter
	now      time.Time
	writes   int
}

func newInstalling(t *testing.T, change func(p v1.Package)) *installing {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	p.SetUID("1")
	change(p)
	i := &installing{now: time.Unix(1000, 0)}
	now := func() time.Time { return i.now }
	i.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(p).WithStatusSubresource(p).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			i.writes++
			return c.SubResource(name).Update(ctx, o, opts...)
		},
	}).Build()
	i.reporter = &Reporter{
		Client: i.api, Events: events.NewFakeRecorder(10), Writes: &expectations.Versions{Now: now}, Now: now,
		CountFailure: func(string) {}, Blocked: func(context.Context, string) error { return nil },
	}
	return i
}

// reconcile reports a reconciliation that sets the current revision, unless the status names it, and has a result. It returns the time until
// the next one, and the revision that the status named before.
func (i *installing) reconcile(t *testing.T, s revision.Summary, failure error) (next time.Duration, before string) {
	t.Helper()
	p := v1.NewPackage(v1.ProviderKind)
	if err := i.api.Get(t.Context(), client.ObjectKey{Name: "boats"}, p); err != nil {
		t.Fatal(err)
	}
	result, err := i.reporter.Report(t.Context(), p, func(context.Context) (ctrl.Result, revision.Summary, error) {
		before = p.PackageStatus().CurrentRevision
		p.PackageStatus().CurrentRevision = "boats-1"
		p.SetConditions(metav1.NewTime(i.now), v1.Active())
		return ctrl.Result{}, s, failure
	}, func(message string) []v1.Condition { return []v1.Condition{v1.Unhealthy(message)} })
	if err != nil && !errors.Is(err, failure) {
		t.Fatal(err)
	}
	return result.RequeueAfter, before
}

// stored returns the package in the API server.
func (i *installing) stored(t *testing.T) v1.Package {
	t.Helper()
	p := v1.NewPackage(v1.ProviderKind)
	if err := i.api.Get(t.Context(), client.ObjectKey{Name: "boats"}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHealthyPackagesAreWrittenOnce(t *testing.T) {
	i := newInstalling(t, func(v1.Package) {})
	created := i.now
	if next, _ := i.reconcile(t, revision.Progressing(""), nil); next != firstStatusDelay || i.writes != 0 {
		t.Fatalf("the next reconciliation is after %v, %d writes", next, i.writes)
	}
	i.now = i.now.Add(firstStatusDelay / 4)
	if next, before := i.reconcile(t, revision.Progressing(""), nil); next != firstStatusDelay*3/4 || before != "boats-1" || i.writes != 0 {
		t.Fatalf("the next reconciliation is after %v, the status named %q, %d writes", next, before, i.writes)
	}
	i.now = i.now.Add(firstStatusDelay / 4)
	if next, before := i.reconcile(t, revision.Ready, nil); next != 0 || before != "boats-1" || i.writes != 1 {
		t.Fatalf("the next reconciliation is after %v, the status named %q, %d writes", next, before, i.writes)
	}
	p := i.stored(t)
	if p.GetCondition(v1.TypeReady).Status != corev1.ConditionTrue || !p.GetCondition(v1.TypeInstalled).LastTransitionTime.Time.Equal(created) {
		t.Errorf("conditions %v; the package is installed since %v", p.PackageStatus().Conditions, created)
	}
	if n := i.reporter.first.held.Len(); n != 0 {
		t.Errorf("%d statuses are held after the write", n)
	}
	if i.reconcile(t, revision.Ready, nil); i.writes != 1 {
		t.Errorf("%d writes", i.writes)
	}
}

func TestProgressIsWrittenAfterASecond(t *testing.T) {
	i := newInstalling(t, func(v1.Package) {})
	next, _ := i.reconcile(t, revision.Progressing(""), nil)
	i.now = i.now.Add(next)
	if next, _ := i.reconcile(t, revision.Progressing(""), nil); next != 0 || i.writes != 1 {
		t.Fatalf("the next reconciliation is after %v, %d writes", next, i.writes)
	}
	if p := i.stored(t); p.PackageStatus().CurrentRevision != "boats-1" || p.GetCondition(v1.TypeReady).Reason != v1.ReasonProgressing {
		t.Errorf("status %+v", p.PackageStatus())
	}
}

// The writes of many packages are spread.
func TestProgressOfManyPackagesIsWrittenSlowly(t *testing.T) {
	var f firstStatuses
	now := time.Unix(1000, 0)
	for n := range 20 {
		p := v1.NewPackage(v1.ProviderKind)
		p.SetUID(types.UID(fmt.Sprint(n)))
		before := p.DeepCopyObject().(v1.Package)
		if got, want := f.hold(before, p, revision.Progressing(""), now), firstStatusDelay+time.Duration(n)*firstStatusInterval; got != want {
			t.Fatalf("package %d is held for %v, want %v", n, got, want)
		}
	}
}

// A failure, and all that a user has to know, is written at once.
func TestOnlyProgressIsHeldBack(t *testing.T) {
	failure := errors.New("no")
	for name, tc := range map[string]struct {
		change  func(p v1.Package)
		summary revision.Summary
		err     error
	}{
		"failure":  {func(v1.Package) {}, revision.Summary{}, failure},
		"message":  {func(v1.Package) {}, revision.Progressing("reading 80 MB"), nil},
		"waiting":  {func(v1.Package) {}, revision.Summary{Waiting: true, Reason: v1.ReasonInactive}, nil},
		"paused":   {func(p v1.Package) { p.SetAnnotations(map[string]string{v1.AnnotationPaused: "true"}) }, revision.Progressing(""), nil},
		"reported": {func(p v1.Package) { p.SetConditions(metav1.Now(), v1.Unpacking("")) }, revision.Progressing(""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstalling(t, tc.change)
			if i.reconcile(t, tc.summary, tc.err); i.writes != 1 {
				t.Errorf("%d writes", i.writes)
			}
		})
	}
}

// A failure during that second keeps what is known.
func TestFailuresKeepTheFirstStatus(t *testing.T) {
	i := newInstalling(t, func(v1.Package) {})
	i.reconcile(t, revision.Progressing(""), nil)
	if _, before := i.reconcile(t, revision.Summary{}, errors.New("no")); before != "boats-1" || i.writes != 1 {
		t.Errorf("the status named %q, %d writes", before, i.writes)
	}
}

// A package of the same name is another one.
func TestDeletedPackagesAreForgotten(t *testing.T) {
	i := newInstalling(t, func(v1.Package) {})
	i.reconcile(t, revision.Progressing(""), nil)
	i.reporter.Forget(i.stored(t))
	if n := i.reporter.first.held.Len(); n != 0 {
		t.Errorf("%d statuses are held", n)
	}
}
