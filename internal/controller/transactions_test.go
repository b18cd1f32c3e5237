package controller_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// wantPackage returns a package of a transaction.
func wantPackage(kind, name, ref string) v1alpha1.WantedPackage {
	return v1alpha1.WantedPackage{
		PackageName: v1alpha1.PackageName{Kind: kind, Name: name},
		Spec:        v1.ProviderSpec{PackageSpec: v1.PackageSpec{Package: ref}},
	}
}

// newTransaction returns a transaction whose packages have as much time as on a busy machine.
func newTransaction(name string, packages ...v1alpha1.WantedPackage) *v1alpha1.Transaction {
	return &v1alpha1.Transaction{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.TransactionSpec{
			Packages: packages, Remove: []v1alpha1.RemovedPackage{}, Deadline: &metav1.Duration{Duration: 2 * time.Minute},
		},
	}
}

// neverHealthy is the deadline of a transaction with a package that never becomes healthy.
const neverHealthy = 4 * time.Second

// untilEnded waits until a transaction has ended.
func untilEnded(t *testing.T, s *testEnv, x *v1alpha1.Transaction) v1alpha1.TransactionStatus {
	t.Helper()
	wait.Until(t, limit, "the transaction "+x.Name+" has ended", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x)
		return fmt.Sprintf("%v, %+v", err, x.Status), x.Status.Phase.IsFinal()
	})
	return x.Status
}

// referenceOf returns the reference of a package, or "" if it does not exist.
func referenceOf(t *testing.T, s *testEnv, kind, name string) string {
	t.Helper()
	p := v1.NewPackage(kind)
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return ""
	}
	if p.GetDeletionTimestamp() != nil { // Its finalizer keeps it until its definitions are gone.
		s.WaitGone(t, p)
		return ""
	}
	return p.PackageSpec().Package
}

// A transaction installs, updates and removes packages, and records what was before.
func TestTransactionChangesSeveralPackages(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	one, _ := r.push(t, "acme/whole-a:v1", configuration("whole-a", "whole-a.test", "one"))
	two, _ := r.push(t, "acme/whole-a:v2", configuration("whole-a", "whole-a.test", "two"))
	other, _ := r.push(t, "acme/whole-b:v1", configuration("whole-b", "whole-b.test", "one"))
	last, _ := r.push(t, "acme/whole-c:v1", configuration("whole-c", "whole-c.test", "one"))
	s.start(t)
	a, c := env.NewPackage(v1.ConfigurationKind, "whole-a", one), env.NewPackage(v1.ConfigurationKind, "whole-c", last)
	s.CreateTemporary(t, a, c)
	s.WaitReady(t, a)
	s.WaitReady(t, c)

	x := newTransaction(
		"whole", wantPackage(v1.ConfigurationKind, "whole-b", other), wantPackage(v1.ConfigurationKind, "whole-a", two),
	)
	x.Spec.Remove = []v1alpha1.RemovedPackage{{PackageName: v1alpha1.PackageName{
		Kind: v1.ConfigurationKind, Name: "whole-c",
	}}}
	s.CreateTemporary(t, x)
	t.Cleanup(func() { s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, "whole-b", other)) })
	if status := untilEnded(t, s, x); status.Phase != v1alpha1.Succeeded {
		t.Fatalf("%+v", status)
	}
	for name, want := range map[string]string{"whole-a": two, "whole-b": other, "whole-c": ""} {
		if got := referenceOf(t, s, v1.ConfigurationKind, name); got != want {
			t.Errorf("%s is installed from %q, want %q", name, got, want)
		}
	}
	for _, p := range x.Status.Packages {
		if (p.Before == nil) != (p.Name == "whole-b") || p.Result == "" {
			t.Errorf("%+v", p)
		}
	}
	t.Logf("%+v", x.Status)
}

// If a package does not become healthy in time, a transaction returns all packages to their former state.
func TestTransactionReturnsAllPackages(t *testing.T) {
	s := withExternalRuntimes(t)
	r := newRegistry(t)
	one, _ := r.push(t, "acme/return-a:v1", configuration("return-a", "return-a.test", "one"))
	two, _ := r.push(t, "acme/return-a:v2", configuration("return-a", "return-a.test", "two"))
	other, _ := r.push(t, "acme/return-b:v1", configuration("return-b", "return-b.test", "one"))
	never, _ := r.push(t, "acme/return-p:v1", provider("return-p", crd("return-p.test", "Thing", "one")))
	last, _ := r.push(t, "acme/return-c:v1", configuration("return-c", "return-c.test", "one"))
	s.start(t)
	a, c := env.NewPackage(v1.ConfigurationKind, "return-a", one), env.NewPackage(v1.ConfigurationKind, "return-c", last)
	s.CreateTemporary(t, a, c)
	s.WaitReady(t, a)
	s.WaitReady(t, c)

	x := newTransaction("return", wantPackage(v1.ProviderKind, "return-p", never),
		wantPackage(v1.ConfigurationKind, "return-b", other), wantPackage(v1.ConfigurationKind, "return-a", two))
	x.Spec.Remove = []v1alpha1.RemovedPackage{{PackageName: v1alpha1.PackageName{
		Kind: v1.ConfigurationKind, Name: "return-c",
	}}}
	x.Spec.Deadline.Duration = neverHealthy
	s.CreateTemporary(t, x)
	status := untilEnded(t, s, x)
	if status.Phase != v1alpha1.Returned || status.Reason != "NotHealthyInTime" {
		t.Errorf("%+v", status)
	}
	t.Log(status.Reason, status.Message, status.Advice)
	for name, want := range map[string]string{"return-a": one, "return-b": "", "return-c": last} {
		if got := referenceOf(t, s, v1.ConfigurationKind, name); got != want {
			t.Errorf("%s is installed from %q, want %q", name, got, want)
		}
	}
	s.WaitGone(t, env.NewProvider("return-p", never)) // Its finalizer keeps it until its CRDs are gone.
	s.WaitReady(t, c)
}

// A transaction keeps what other clients have changed since it has written it, and returns the rest.
func TestTransactionKeepsChangesOfOthers(t *testing.T) {
	s := withExternalRuntimes(t)
	r := newRegistry(t)
	names := []string{"others-applied", "others-changed", "others-left", "others-own"}
	var packages []v1alpha1.WantedPackage
	refs := map[string]string{}
	for _, name := range names {
		refs[name], _ = r.push(t, "acme/"+name+":v1", configuration(name, name+".test", "one"))
		packages = append(packages, wantPackage(v1.ConfigurationKind, name, refs[name]))
	}
	never, _ := r.push(t, "acme/others-p:v1", provider("others-p", crd("others-p.test", "Thing", "one")))
	s.start(t)
	x := newTransaction("others", append(packages, wantPackage(v1.ProviderKind, "others-p", never))...)
	x.Spec.Deadline.Duration = neverHealthy
	s.CreateTemporary(t, x)
	get := func(name string) v1.Package {
		p := v1.NewPackage(v1.ConfigurationKind)
		wait.Until(t, limit, name+" is written", func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, p)
			return fmt.Sprint(err), err == nil && strings.HasPrefix(revision.TransactionOf(p), x.Name+"/")
		})
		t.Cleanup(func() { s.CleanUp(t, p) })
		return p
	}
	get("others-own")
	wait.Until(t, limit, "the package states that a transaction changes it", func() (string, bool) {
		c := get("others-own").GetCondition(v1.TypeInTransaction)
		return fmt.Sprint(c), c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "transaction others changes")
	})
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": v1.ConfigurationKind,
		"metadata": map[string]any{"name": "others-applied"},
		"spec":     map[string]any{"package": refs["others-applied"]},
	}}
	get("others-applied")
	if err := s.Client.Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("flux"),
	); err != nil {
		t.Fatal(err)
	}
	env.Update(
		t, s.Env, get("others-changed"), func(p v1.Package) { p.PackageSpec().RevisionHistoryLimit = new(int64(7)) },
	)
	// As a command does that wants the package as it is.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"xpkg.dev/transaction":null}}}`))
	if err := s.Client.Patch(t.Context(), get("others-left"), patch, client.FieldOwner(plan.FieldManager)); err != nil {
		t.Fatal(err)
	}

	status := untilEnded(t, s, x)
	const want = "left as they are: configuration/others-applied, configuration/others-changed, configuration/others-left."
	if status.Phase != v1alpha1.Failed ||
		!containsAll(status.Advice, "others-applied", "others-changed", "others-left", "were left as they are") {
		t.Errorf("%s: %s\nwant %s", status.Phase, status.Advice, want)
	}
	for _, name := range names {
		if exists := referenceOf(t, s, v1.ConfigurationKind, name) != ""; exists == (name == "others-own") {
			t.Errorf("%s exists: %t", name, exists)
		}
	}
	wait.Until(t, limit, "no transaction changes the packages", func() (string, bool) {
		p := v1.NewPackage(v1.ConfigurationKind)
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: "others-changed"}, p)
		c := p.GetCondition(v1.TypeInTransaction)
		return fmt.Sprint(err, c), err == nil && c.Reason == ""
	})
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// Transactions that concern the same packages run one after the other, in the order of their creation. A later one that
// was planned with the state before is refused, without a write.
func TestTransactionsOfTheSamePackagesWait(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	var refs []string
	for _, v := range []string{"v1", "v2", "v3"} {
		ref, _ := r.push(t, "acme/turn:"+v, configuration("turn", "turn.test", v))
		refs = append(refs, ref)
	}
	alone, _ := r.push(t, "acme/alone:v1", configuration("alone", "alone.test", "one"))
	stop := s.start(t)
	p := env.NewPackage(v1.ConfigurationKind, "turn", refs[0])
	s.CreateTemporary(t, p)
	s.WaitReady(t, p)
	stop()

	expected := v1alpha1.Expected{UID: p.GetUID(), Generation: p.GetGeneration()}
	var all []*v1alpha1.Transaction
	for i, ref := range []string{refs[1], refs[2], refs[2]} {
		w := wantPackage(v1.ConfigurationKind, "turn", ref)
		if i < 2 {
			w.Expected = expected
		}
		all = append(all, newTransaction(fmt.Sprintf("turn-%d", i), w))
	}
	independent := newTransaction("turn-alone", wantPackage(v1.ConfigurationKind, "alone", alone))
	t.Cleanup(func() { s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, "alone", alone)) })
	for _, x := range append(all, independent) {
		s.CreateTemporary(t, x)
	}
	s.start(t)
	for i, want := range []v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Refused, v1alpha1.Succeeded} {
		status := untilEnded(t, s, all[i])
		if status.Phase != want || want == v1alpha1.Refused && (status.Reason != "PlanMoved" || len(status.Packages) > 0) {
			t.Errorf("transaction %d: %+v", i, status)
		}
		if i > 0 && status.StartTime.Before(all[i-1].Status.CompletionTime) {
			t.Errorf(
				"transaction %d started at %s, and the one before ended at %s", i, status.StartTime, all[i-1].Status.CompletionTime,
			)
		}
	}
	if status := untilEnded(t, s, independent); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%+v", status)
	}
	if got := referenceOf(t, s, v1.ConfigurationKind, "turn"); got != refs[2] {
		t.Errorf("got %s", got)
	}
}

// A transaction that keeps the packages after a failure does not hold them while it only waits until they are healthy:
// another one can repair them at once. One without a deadline ends when the packages are written.
func TestTransactionsThatKeepHoldNothingAfterTheirWrites(t *testing.T) {
	s := withExternalRuntimes(t)
	r := newRegistry(t)
	never, _ := r.push(t, "acme/keep-p:v1", provider("keep-p", crd("keep-p.test", "Thing", "one")))
	again, _ := r.push(t, "acme/keep-p:v2", provider("keep-p", crd("keep-p.test", "Thing", "two")))
	other, _ := r.push(t, "acme/keep-c:v1", configuration("keep-c", "keep-c.test", "one"))
	s.start(t)
	t.Cleanup(func() {
		s.CleanUp(t, env.NewProvider("keep-p", never))
		s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, "keep-c", other))
	})
	keeping := func(name string, deadline time.Duration, packages ...v1alpha1.WantedPackage) *v1alpha1.Transaction {
		x := newTransaction(name, packages...)
		x.Spec.OnFailure, x.Spec.Deadline = v1alpha1.Keep, &metav1.Duration{Duration: deadline}
		s.CreateTemporary(t, x)
		return x
	}
	waiting := keeping(
		"keep-waiting", time.Hour, wantPackage(v1.ProviderKind, "keep-p", never),
		wantPackage(v1.ConfigurationKind, "keep-c", other),
	)
	wait.Until(t, limit, "the packages are written", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(waiting), waiting)
		return fmt.Sprint(err, waiting.Status), waiting.Status.Phase == v1alpha1.Watching
	})
	if status := untilEnded(
		t, s, keeping("keep-short", 0, wantPackage(v1.ProviderKind, "keep-p", again)),
	); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%+v", status)
	}
	if got := referenceOf(t, s, v1.ProviderKind, "keep-p"); got != again {
		t.Errorf("got %s", got)
	}
	if status := untilEnded(
		t, s, keeping("keep-failed", 1, wantPackage(v1.ProviderKind, "keep-p", never)),
	); status.Phase != v1alpha1.Failed {
		t.Errorf("%+v", status)
	}
	if got := referenceOf(t, s, v1.ProviderKind, "keep-p"); got != never {
		t.Errorf("got %s", got)
	}
}

// A transaction deletes only the custom resources to whose deletion the user has agreed: those that appear while it
// waits for its first removals stop it, also if another manager continues it.
func TestTransactionsKeepNewCustomResources(t *testing.T) {
	for _, isRestarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %t", isRestarted), func(t *testing.T) {
			s := withExternalRuntimes(t)
			r := newRegistry(t)
			name := fmt.Sprintf("precious-%t", isRestarted)
			group := name + ".test"
			rope, _ := r.push(t, "acme/"+name+"-rope:v1.0.0", provider(name+"-rope", crd(group, "Rope", "one")))
			mast, _ := r.push(t, "acme/"+name+"-mast:v1.0.0", meta("Configuration", name+"-mast",
				"spec:\n  dependsOn:\n  - {provider: "+strings.TrimSuffix(rope, ":v1.0.0")+", version: '>=v1.0.0'}\n"))
			stop := s.start(t)
			base, top := env.NewProvider(name+"-rope", rope), env.NewPackage(v1.ConfigurationKind, name+"-mast", mast)
			top.SetFinalizers([]string{"precious.test/hold"})
			s.CreateTemporary(t, base, top)
			for _, p := range []v1.Package{base, top} {
				wait.Until(t, limit, p.GetName()+" is installed", func() (string, bool) {
					live := v1.NewPackage(p.PackageKind())
					err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), live)
					return fmt.Sprint(err, live.PackageStatus()),
						err == nil && live.GetCondition(v1.TypeInstalled).Status == corev1.ConditionTrue
				})
			}
			x := newTransaction(name)
			x.Spec.Deadline.Duration = time.Minute
			x.Spec.Remove = []v1alpha1.RemovedPackage{
				{PackageName: v1alpha1.PackageName{Kind: v1.ProviderKind, Name: base.GetName()}},
				{PackageName: v1alpha1.PackageName{Kind: v1.ConfigurationKind, Name: top.GetName()}},
			}
			s.CreateTemporary(t, x)
			wait.Until(t, limit, "the first package is being deleted", func() (string, bool) {
				live := v1.NewPackage(v1.ConfigurationKind)
				err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(top), live)
				return fmt.Sprint(err, x.Status), err == nil && live.GetDeletionTimestamp() != nil
			})
			if isRestarted {
				stop()
			}
			precious := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Rope", "metadata": map[string]any{"name": "precious"},
			}}
			wait.Until(t, limit, "the custom resource is created", func() (string, bool) {
				err := s.Client.Create(t.Context(), precious)
				return fmt.Sprint(err), err == nil
			})
			if isRestarted {
				s.start(t)
			}
			env.Update(t, s.Env, top, func(p v1.Package) {
				p.SetFinalizers(slices.DeleteFunc(p.GetFinalizers(), func(f string) bool { return f == "precious.test/hold" }))
			})
			status := untilEnded(t, s, x)
			if status.Phase != v1alpha1.Returned || !strings.Contains(status.Message, "precious-") {
				t.Errorf("%s: %s: %s", status.Phase, status.Reason, status.Message)
			}
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(precious), precious); err != nil ||
				precious.GetDeletionTimestamp() != nil {
				t.Errorf("the custom resource is lost: %v", err)
			}
			s.Delete(t, precious)
		})
	}
}

// If the manager is killed before or after any write of a transaction, the next manager completes it: all packages are
// as they are wanted, or all are as they were.
func TestTransactionsContinueAfterTheManagerIsKilled(t *testing.T) {
	s, network := newEnv(t), fault.New(fault.SingleSubject("manager"))
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
	r := newRegistry(t)
	one, _ := r.push(t, "acme/kill-a:v1", configuration("kill-a", "kill-a.test", "one"))
	two, _ := r.push(t, "acme/kill-a:v2", configuration("kill-a", "kill-a.test", "two"))
	other, _ := r.push(t, "acme/kill-b:v1", configuration("kill-b", "kill-b.test", "one"))
	stop := s.start(t)
	a := env.NewPackage(v1.ConfigurationKind, "kill-a", one)
	s.CreateTemporary(t, a)
	t.Cleanup(func() { s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, "kill-b", other)) })
	s.WaitReady(t, a)
	stop()
	isWrite := func(c fault.Call) bool {
		isPackage := strings.Contains(c.Path, "/configurations") && !strings.HasSuffix(c.Path, "/status")
		return c.Method != http.MethodGet && c.Method != "WATCH" && (isPackage || strings.Contains(c.Path, "/transactions"))
	}
	b := []v1alpha1.RemovedPackage{{PackageName: v1alpha1.PackageName{Kind: v1.ConfigurationKind, Name: "kill-b"}}}
	legs := []struct {
		name     string
		packages []v1alpha1.WantedPackage
		remove   []v1alpha1.RemovedPackage
		deadline time.Duration
		failure  v1alpha1.FailurePolicy
		phase    v1alpha1.Phase
		a, b     string
	}{
		{"return", []v1alpha1.WantedPackage{
			wantPackage(v1.ConfigurationKind, "kill-b", other), wantPackage(v1.ConfigurationKind, "kill-a", two),
		}, nil, 1, v1alpha1.Return, v1alpha1.Returned, one, ""},
		{"forth", []v1alpha1.WantedPackage{
			wantPackage(v1.ConfigurationKind, "kill-b", other), wantPackage(v1.ConfigurationKind, "kill-a", two),
		}, nil, time.Minute, v1alpha1.Return, v1alpha1.Succeeded, two, other},
		{"back", []v1alpha1.WantedPackage{
			wantPackage(v1.ConfigurationKind, "kill-a", one),
		}, b, time.Minute, v1alpha1.Return, v1alpha1.Succeeded, one, ""},
		{"keep", []v1alpha1.WantedPackage{
			wantPackage(v1.ConfigurationKind, "kill-b", other), wantPackage(v1.ConfigurationKind, "kill-a", two),
		}, nil, 0, v1alpha1.Keep, v1alpha1.Succeeded, two, other},
		{"kept", []v1alpha1.WantedPackage{
			wantPackage(v1.ConfigurationKind, "kill-a", one),
		}, b, 0, v1alpha1.Keep, v1alpha1.Succeeded, one, ""},
	}
	if !lane.IsFull() {
		legs = legs[:1]
	}
	killed := 0
	for call, struck := 0, true; struck && !t.Failed(); call++ {
		struck = false
		for i, leg := range legs {
			kind := []fault.Kind{fault.KilledBefore, fault.KilledAfter}[(call+i)%2]
			t.Run(fmt.Sprintf("%s, %s %d", leg.name, kind, call), func(t *testing.T) {
				x := newTransaction(fmt.Sprintf("kill-%s-%d", leg.name, call), leg.packages...)
				x.Spec.Remove, x.Spec.Deadline = append(x.Spec.Remove, leg.remove...), &metav1.Duration{Duration: leg.deadline}
				x.Spec.OnFailure = leg.failure
				network.Set("manager", fault.Fault{Kind: kind, Side: fault.Cluster, Filter: isWrite, Call: call})
				stop := s.start(t)
				s.CreateTemporary(t, x)
				wait.Until(t, limit, "the manager is killed, or done", func() (string, bool) {
					if _, hit := network.Injected("manager"); hit {
						struck = true
						killed++
						return "", true
					}
					err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x)
					return fmt.Sprint(err, x.Status), x.Status.Phase.IsFinal()
				})
				stop()
				network.Clear()
				defer s.start(t)()
				status := untilEnded(t, s, x)
				if status.Phase != leg.phase {
					t.Errorf("%+v", status)
				}
				isA, isB := referenceOf(t, s, v1.ConfigurationKind, "kill-a"), referenceOf(t, s, v1.ConfigurationKind, "kill-b")
				if isA != leg.a || isB != leg.b {
					t.Errorf("got %q and %q, want %q and %q", isA, isB, leg.a, leg.b)
				}
				untilSettled(t, s, a)
			})
		}
	}
	t.Logf("the manager was killed %d times", killed)
	if killed < 9*len(legs) {
		t.Errorf("the manager was killed %d times", killed)
	}
}
