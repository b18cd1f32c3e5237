package transactions

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/fence"
)

// waiting is a reconciler with transactions that wait for a policy, and its calls to the API server.
type waiting struct {
	*Reconciler
	policy *v1alpha1.ChangePolicy
	all    []*v1alpha1.Transaction
	now    time.Time
	calls  int
}

const digest = "sha256:aaaa"

func newWaiting(t *testing.T, count int) *waiting {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &waiting{now: time.Date(2026, 12, 5, 12, 0, 0, 0, time.UTC), policy: &v1alpha1.ChangePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangePolicyName, UID: "1", Generation: 1},
		Spec: v1alpha1.ChangePolicySpec{
			TimeZone: "Europe/Berlin",
			Windows: []v1alpha1.ChangeWindow{{
				Days: []v1alpha1.Weekday{"Sat"}, From: "22:00", Duration: metav1.Duration{Duration: time.Hour},
			}},
			Approvals: []v1alpha1.NeededApproval{{People: 2}},
		},
	}}
	objects := []client.Object{w.policy}
	for i := range count {
		x := &v1alpha1.Transaction{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("change-%d", i), Annotations: map[string]string{fence.AnnotationUser: "creator"},
		}}
		x.Status.Phase = v1alpha1.Waiting
		x.Status.Policy = &v1alpha1.AskedByPolicy{Policy: "1/1", Plan: digest, People: 2, Reasons: []string{"every change"}}
		w.all, objects = append(w.all, x), append(objects, x)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build()
	counted := func() { w.calls++ }
	w.Reconciler = &Reconciler{
		Cache: cluster, Now: func() time.Time { return w.now },
		Client: interceptor.NewClient(cluster, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				counted()
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				counted()
				return c.List(ctx, list, opts...)
			},
			SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
			) error {
				counted()
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}),
	}
	return w
}

// look reconciles a transaction that waits, and returns when it looks again.
func (w *waiting) look(t *testing.T, i int) time.Duration {
	t.Helper()
	out, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.all[i])})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cache.Get(t.Context(), client.ObjectKeyFromObject(w.all[i]), w.all[i]); err != nil {
		t.Fatal(err)
	}
	return out.RequeueAfter
}

// A hundred transactions that wait make no calls to the API server, once their status is written.
func TestTransactionsThatWaitMakeNoCalls(t *testing.T) {
	w := newWaiting(t, 100)
	for range 6 { // In an hour.
		for i := range w.all {
			if again := w.look(t, i); again != lookAgain {
				t.Fatalf("%s looks again after %s", w.all[i].Name, again)
			}
		}
		w.now = w.now.Add(lookAgain)
	}
	if w.calls != len(w.all) {
		t.Errorf("%d calls, want one write of the status of each", w.calls)
	}
	if requests := w.awaiting(t.Context(), nil); len(requests) != len(w.all) {
		t.Errorf("a change of the policy concerns %d transactions", len(requests))
	}
}

// A transaction looks again when the window opens, and at most after lookAgain, so that a clock that jumps delays it no
// longer. What it waits for follows the clock in both directions.
func TestTransactionsThatWaitFollowTheClock(t *testing.T) {
	w := newWaiting(t, 1)
	for _, tc := range []struct {
		now, message string
		again        time.Duration
	}{
		{"2026-12-05T12:00:00Z", "starts Sat 5 Dec 2026 22:00 CET, because no window for changes is open; needs", lookAgain},
		{"2026-12-05T20:59:00Z", "starts Sat 5 Dec 2026 22:00 CET", time.Minute},
		{"2026-12-05T20:59:59.9Z", "starts Sat 5 Dec 2026 22:00 CET", time.Second},
		{"2026-12-05T21:00:00Z", "needs the approval of 2 people (every change): run `xpkg approve transaction change-0`", lookAgain},
		{"2026-12-05T23:00:00Z", "starts Sat 12 Dec 2026 22:00 CET", lookAgain},
		{"2026-12-04T00:00:00Z", "starts Sat 5 Dec 2026 22:00 CET", lookAgain},
	} {
		var err error
		if w.now, err = time.Parse(time.RFC3339, tc.now); err != nil {
			t.Fatal(err)
		}
		if again := w.look(t, 0); again != tc.again || !strings.HasPrefix(w.all[0].Status.Message, tc.message) {
			t.Errorf("%s: again after %s: %s", tc.now, again, w.all[0].Status.Message)
		}
	}
}

// A transaction is planned again when it may start, the policy has changed, or enough people have approved another plan.
func TestTransactionsThatWaitArePlannedAgain(t *testing.T) {
	approve := func(approvals ...string) func(*waiting) {
		return func(w *waiting) {
			w.all[0].Annotations[fence.AnnotationApprovals] = strings.Join(approvals, "\n")
		}
	}
	opened := func(change func(*waiting)) func(*waiting) {
		return func(w *waiting) {
			w.now = time.Date(2026, 12, 5, 21, 30, 0, 0, time.UTC)
			change(w)
		}
	}
	a, b, mine := changepolicy.Approve("", digest, "a"), changepolicy.Approve("", digest, "b"), changepolicy.Approve("", digest, "creator")
	for name, tc := range map[string]struct {
		change func(*waiting)
		plans  bool
	}{
		"nothing":                         {func(*waiting) {}, false},
		"approved, and closed":            {approve(a, b), false},
		"open, and not approved":          {opened(func(*waiting) {}), false},
		"open, and approved":              {opened(approve(a, b)), true},
		"open, and approved once":         {opened(approve(a, a)), false},
		"open, and approved by oneself":   {opened(approve(a, mine)), false},
		"another plan is approved":        {approve("sha256:bbbb a", "sha256:bbbb b"), true},
		"another plan is approved once":   {approve("sha256:bbbb a", "sha256:cccc b"), false},
		"another policy":                  {func(w *waiting) { w.all[0].Status.Policy.Policy = "0/1" }, true},
		"another generation":              {func(w *waiting) { w.all[0].Status.Policy.Policy = "1/0" }, true},
		"it waits for other transactions": {func(w *waiting) { w.all[0].Status.Policy = nil }, true},
	} {
		w := newWaiting(t, 1)
		tc.change(w)
		again, err := w.stillWaits(t.Context(), w.all[0])
		if err != nil || (again == 0) != tc.plans {
			t.Errorf("%s: again after %s, %v", name, again, err)
		}
	}
}
