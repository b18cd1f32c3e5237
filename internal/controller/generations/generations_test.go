package generations

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/generation"
)

// history is a random history of packages and transactions, with the manager that records it.
type history struct {
	client client.Client
	now    time.Time
	r      *Reconciler
	// recorded are the generations after the last reconciliation, newest first.
	recorded []generation.Generation
}

func (h *history) restart() {
	h.r = &Reconciler{
		Client: h.client, Live: h.client, Namespace: "ns", Now: func() time.Time { return h.now },
		Log: slog.New(slog.DiscardHandler),
	}
}

func (h *history) packages(t *rapid.T) []v1.Package {
	list := &v1.ProviderList{}
	if err := h.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Packages()
}

// write creates or changes a package, which is not ready then.
func (h *history) write(t *rapid.T) {
	name, version := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), rapid.IntRange(1, 3).Draw(t, "version")
	p := &v1.Provider{}
	p.Name = name
	exists := h.client.Get(t.Context(), client.ObjectKeyFromObject(p), p) == nil
	p.Spec.Package = fmt.Sprintf("registry.example.org/%s:v%d", name, version)
	p.Generation++
	if exists {
		if err := h.client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	} else if err := h.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// settle makes packages ready, or some of them not ready.
func (h *history) settle(t *rapid.T, ready func() bool) {
	for _, p := range h.packages(t) {
		status := corev1.ConditionFalse
		if ready() {
			status = corev1.ConditionTrue
		}
		p.PackageStatus().ObservedGeneration = p.GetGeneration()
		p.SetConditions(metav1.NewTime(h.now), v1.Ready(status, "Reason", ""))
		if err := h.client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *history) running(t *rapid.T) []v1alpha1.Transaction {
	var list v1alpha1.TransactionList
	if err := h.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(x v1alpha1.Transaction) bool { return x.Status.Phase.IsFinal() })
}

func (h *history) reconcile(t *rapid.T) ctrl.Result {
	result, err := h.r.Reconcile(t.Context(), ctrl.Request{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := generation.List(t.Context(), h.client, "ns")
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range all {
		if i > 0 && g.Number != all[i-1].Number-1 {
			t.Fatalf("generation %d follows %d", all[i-1].Number, g.Number)
		}
	}
	if len(all) > generation.Kept {
		t.Fatalf("%d generations are kept", len(all))
	}
	h.recorded = all
	return result
}

// newest returns the number and the packages of the newest generation.
func (h *history) newest() (int64, []generation.Package) {
	if len(h.recorded) == 0 {
		return 0, nil
	}
	return h.recorded[0].Number, h.recorded[0].Packages
}

// Whatever happens, and whenever the manager starts again: a set that is ready is recorded, once; nothing is recorded
// while a transaction runs; and a set that does not become ready is recorded after a time.
func TestEachSettledSetIsRecordedOnce(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err = cmp.Or(err, appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		h := &history{now: time.Unix(1e9, 0), client: fake.NewClientBuilder().WithScheme(scheme).
			WithStatusSubresource(&v1.Provider{}, &v1alpha1.Transaction{}).Build()}
		h.restart()
		transactions := 0
		t.Repeat(map[string]func(*rapid.T){
			"write":   h.write,
			"restart": func(*rapid.T) { h.restart() },
			"time": func(t *rapid.T) {
				h.now = h.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "time"))
			},
			"some": func(t *rapid.T) { h.settle(t, func() bool { return rapid.Bool().Draw(t, "ready") }) },
			"delete": func(t *rapid.T) {
				if all := h.packages(t); len(all) > 0 {
					if err := h.client.Delete(t.Context(), all[0]); err != nil {
						t.Fatal(err)
					}
				}
			},
			"begin": func(t *rapid.T) {
				transactions++
				x := &v1alpha1.Transaction{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("t", transactions)}}
				x.Status.Phase, x.Status.StartTime = v1alpha1.Applying, &metav1.Time{Time: h.now}
				if err := h.client.Create(t.Context(), x.DeepCopy()); err != nil {
					t.Fatal(err)
				}
				status := x.Status
				if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(x), x); err != nil {
					t.Fatal(err)
				}
				x.Status = status
				if err := h.client.Status().Update(t.Context(), x); err != nil {
					t.Fatal(err)
				}
			},
			"end": func(t *rapid.T) {
				for _, x := range h.running(t) {
					x.Status.Phase, x.Status.CompletionTime = v1alpha1.Succeeded, &metav1.Time{Time: h.now}
					if err := h.client.Status().Update(t.Context(), &x); err != nil {
						t.Fatal(err)
					}
				}
			},
			"": func(t *rapid.T) {
				before, _ := h.newest()
				h.reconcile(t)
				number, set := h.newest()
				running := len(h.running(t)) > 0
				live := h.packages(t)
				switch isReady := !slices.ContainsFunc(live, func(p v1.Package) bool { return !isReady(p) }); {
				case number > before+1:
					t.Fatalf("recorded %d generations at once", number-before)
				case running && number != before:
					t.Fatal("recorded while a transaction runs")
				case !running && isReady && len(generation.Changes(set, generation.Of(live))) > 0:
					t.Fatalf("not recorded: %v", generation.Changes(set, generation.Of(live)))
				case number > 1 && number != before && len(generation.Changes(h.recorded[1].Packages, set)) == 0:
					t.Fatal("recorded without a change")
				case !running && isReady && number > 0 && !h.recorded[0].Healthy:
					t.Fatal("not marked as healthy")
				}
			},
		})
		// The manager comes back when the time has passed, and not before.
		for _, x := range h.running(t) {
			x.Status.Phase = v1alpha1.Returned
			if err := h.client.Status().Update(t.Context(), &x); err != nil {
				t.Fatal(err)
			}
		}
		h.now = h.now.Add(h.reconcile(t).RequeueAfter)
		h.reconcile(t)
		if _, set := h.newest(); len(generation.Changes(set, generation.Of(h.packages(t)))) > 0 {
			t.Fatal("a set that is not ready was not recorded")
		}
	})
}
