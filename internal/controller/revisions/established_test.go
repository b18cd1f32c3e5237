package revisions

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

func TestStallIsDetectedOnceForEachTimeout(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steps := []struct {
		after   time.Duration
		missing int
		want    bool
	}{
		{0, 9, false},
		{stallTimeout - 1, 9, false},
		{stallTimeout, 8, false},
		{2*stallTimeout - 1, 8, false},
		{2 * stallTimeout, 8, true},
		{2*stallTimeout + 1, 8, false},
		{3 * stallTimeout, 8, true},
		{4 * stallTimeout, 7, false},
	}
	var s stallDetector
	for _, step := range steps {
		if got := s.isStalled(step.missing, begin.Add(step.after)); got != step.want {
			t.Errorf("%d missing after %s: got %t", step.missing, step.after, got)
		}
	}
}

func TestPollIntervalFollowsTheRateOfTheAPIServer(t *testing.T) {
	type step struct {
		after   time.Duration
		missing int
		want    time.Duration
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, steps := range map[string][]step{
		"one CRD": {
			{0, 1, establishedPoll},
			{50 * time.Millisecond, 1, establishedPoll},
			{400 * time.Millisecond, 1, 400 * time.Millisecond},
		},
		"500 CRDs": {
			{0, 500, 500 * fastestEstablished},
			{2500 * time.Millisecond, 500, 2500 * time.Millisecond},
			{5 * time.Second, 400, maxEstablishedPoll}, // 20 in a second: 15 s for three quarters
			{20 * time.Second, 100, 3750 * time.Millisecond},
			{23 * time.Second, 40, 1500 * time.Millisecond},
			{24 * time.Second, 10, 600 * time.Millisecond},
			{24400 * time.Millisecond, 1, 610 * time.Millisecond},
			{24950 * time.Millisecond, 900, maxEstablishedPoll}, // more than at first: some were removed
		},
	} {
		var p pollInterval
		for _, step := range steps {
			if got := p.next(step.missing, begin.Add(step.after)); got != step.want {
				t.Errorf("%s: %d missing after %s: got %s, want %s", name, step.missing, step.after, got, step.want)
			}
		}
	}
}

func TestEstablishedWaitReportsAtIntervalsThatDouble(t *testing.T) {
	type step struct {
		after   time.Duration
		missing int
		want    waitAction
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, steps := range map[string][]step{
		"progress": {
			{0, 2000, keepWaiting},
			{19 * time.Second, 1600, keepWaiting},
			{20 * time.Second, 1590, reportWaiting},
			{39 * time.Second, 1200, keepWaiting},
			{58 * time.Second, 800, keepWaiting},
			{60 * time.Second, 790, reportWaiting},
			{79 * time.Second, 400, keepWaiting},
			{98 * time.Second, 9, keepWaiting},
		},
		"no progress": {
			{0, 3, keepWaiting},
			{5 * time.Second, 1, keepWaiting},
			{20 * time.Second, 1, reportWaiting},
			{24 * time.Second, 1, keepWaiting},
			{25 * time.Second, 1, stopWaiting},
		},
		"more than before": { // some were removed
			{0, 3, keepWaiting},
			{10 * time.Second, 4, keepWaiting},
			{20 * time.Second, 4, stopWaiting},
		},
	} {
		var w establishedWait
		for _, step := range steps {
			now := begin.Add(step.after)
			if rest := w.rest(now); rest > establishedTimeout {
				t.Errorf("%s: a wait of %s after %s", name, rest, step.after)
			}
			if got := w.next(step.missing, now); got != step.want {
				t.Errorf("%s: %d missing after %s: got %d, want %d", name, step.missing, step.after, got, step.want)
			}
		}
	}
}

// A wait for thousands of CRDs ends when the package is not wanted any more.
func TestWaitEndsWithTheRevision(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(context.Context, client.Client, revision.Set) error{
		"DeletedPackage": func(
			ctx context.Context, c client.Client, s revision.Set,
		) error {
			return c.Delete(ctx, s.Package)
		},
		"DeletedRevision": func(ctx context.Context, c client.Client, s revision.Set) error {
			return c.Delete(ctx, s.Revision)
		},
		"ChangedRevision": func(ctx context.Context, c client.Client, s revision.Set) error {
			changed := s.Revision.DeepCopyObject().(v1.PackageRevision)
			changed.SetGeneration(2)
			return c.Update(ctx, changed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := revision.Set{
				Package:  &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", Generation: 1}},
				Revision: &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "p-1", UID: "2", Generation: 1}},
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set.Package, set.Revision).Build()
			r := &Reconciler{Kind: v1.ProviderKind, API: kube.API{Client: c}}
			ctx, cancel := r.whileCurrent(t.Context(), set)
			defer cancel()
			if r.isChanged(t.Context(), set.Package, &v1.Provider{}) ||
				r.isChanged(t.Context(), set.Revision, &v1.ProviderRevision{}) {
				t.Fatal("the objects have changed before the test changes them")
			}
			if err := change(t.Context(), c, set); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, requeue.ErrStale) {
				t.Errorf("the wait ended with %v", err)
			}
		})
	}
}
