package controller_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// Random transactions that run at the same time, while the manager is killed at a random write and another client edits
// the packages, have the result of the same transactions one after the other, each of them made as a whole or not at
// all. No edit is lost, and nothing is left behind.
func TestRandomTransactionsAreWhole(t *testing.T) {
	rounds, seed := 2, uint64(time.Now().UnixNano())
	if lane.IsFull() {
		rounds = 60
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s, network := newEnv(t), fault.New(fault.SingleSubject("manager"))
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
	r := newRegistry(t)
	names := []string{"random-a", "random-b", "random-c", "random-d"}
	versions := map[string][]string{}
	for _, name := range names {
		t.Cleanup(func() { s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, name, "")) })
		for _, version := range []string{"v1", "v2", "v3"} {
			ref, _ := r.push(t, "acme/"+name+":"+version, configuration(name, name+".test", version))
			versions[name] = append(versions[name], ref)
		}
	}
	s.start(t)()
	state := map[string]string{} // the reference of each installed package
	ended := map[v1alpha1.Phase]int{}
	killed := 0
	for round := range rounds {
		network.Set("manager", fault.Fault{
			Kind: []fault.Kind{fault.KilledBefore, fault.KilledAfter}[random.IntN(2)], Side: fault.Cluster,
			Call: random.IntN(12),
			Filter: func(c fault.Call) bool {
				return c.Method != http.MethodGet && c.Method != "WATCH" &&
					(strings.Contains(c.Path, "/configurations") || strings.Contains(c.Path, "/transactions"))
			},
		})
		stop := s.start(t)
		var all []*v1alpha1.Transaction
		for i := range 2 + random.IntN(2) {
			x := newTransaction(fmt.Sprintf("random-%d-%d", round, i))
			if random.IntN(3) == 0 {
				x.Spec.Deadline.Duration = 1 // No package is healthy in time.
			}
			for _, name := range names {
				switch random.IntN(4) {
				case 0:
					x.Spec.Remove = append(x.Spec.Remove, v1alpha1.RemovedPackage{PackageName: v1alpha1.PackageName{
						Kind: v1.ConfigurationKind, Name: name,
					}})
				case 1, 2:
					x.Spec.Packages = append(x.Spec.Packages, wantPackage(v1.ConfigurationKind, name, versions[name][random.IntN(3)]))
				}
			}
			if len(x.Spec.Packages)+len(x.Spec.Remove) == 0 {
				continue
			}
			s.CreateTemporary(t, x)
			all = append(all, x)
		}
		edited, uid := names[random.IntN(len(names))], types.UID("")
		if p := env.NewPackage(
			v1.ConfigurationKind, edited, "",
		); s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p) == nil && p.GetDeletionTimestamp() == nil {
			patch := client.RawPatch(
				types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, round),
			)
			if err := s.Client.Patch(t.Context(), p, patch, client.FieldOwner("kubectl")); err == nil {
				uid = p.GetUID()
			}
		}
		wait.Until(t, limit, "the manager is killed, or done", func() (string, bool) {
			_, hit := network.Injected("manager")
			left := slices.DeleteFunc(slices.Clone(all), func(x *v1alpha1.Transaction) bool {
				return s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x) == nil && x.Status.Phase.IsFinal()
			})
			return fmt.Sprint(len(left), " left"), hit || len(left) == 0
		})
		if _, hit := network.Injected("manager"); hit {
			killed++
		}
		stop()
		network.Clear()
		stop = s.start(t)
		for _, x := range all {
			untilEnded(t, s, x)
			ended[x.Status.Phase]++
		}
		// Transactions that concern the same packages never overlap: the order of their ends is the order in which they were
		// made.
		slices.SortFunc(all, func(a, b *v1alpha1.Transaction) int {
			return a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time)
		})
		for _, x := range all {
			if x.Status.Phase != v1alpha1.Succeeded {
				continue
			}
			for _, p := range x.Spec.Packages {
				state[p.Name] = p.Spec.Package
			}
			for _, p := range x.Spec.Remove {
				delete(state, p.Name)
			}
		}
		for _, name := range names {
			wait.Until(t, limit, name+" is as the transactions have left it", func() (string, bool) {
				p := v1.NewPackage(v1.ConfigurationKind)
				err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, p)
				is := ""
				if err == nil {
					is = p.PackageSpec().Package
				}
				isHeld := p.GetCondition(v1.TypeInTransaction).Reason != ""
				isLost := name == edited && p.GetUID() == uid && uid != "" &&
					p.GetAnnotations()["example.com/edit"] != fmt.Sprint(round)
				return fmt.Sprintf(
					"round %d: %q, want %q, held %t, edit lost %t\n%s", round, is, state[name], isHeld, isLost, describeAll(all),
				), is == state[name] && !isHeld && !isLost
			})
		}
		for _, x := range all {
			if len(x.Finalizers) > 0 {
				wait.Until(t, limit, x.Name+" has no finalizer", func() (string, bool) {
					err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x)
					return fmt.Sprint(err), err == nil && len(x.Finalizers) == 0
				})
			}
		}
		stop()
	}
	t.Logf("%d rounds, the manager was killed %d times: %v", rounds, killed, ended)
	if lane.IsFull() && (killed < rounds/3 || ended[v1alpha1.Succeeded] < rounds/2 || ended[v1alpha1.Returned] == 0) {
		t.Error("the rounds prove too little")
	}
}

func describeAll(all []*v1alpha1.Transaction) string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprintf(
			"%s %s %s at %s: %v, without %v (%s)", x.Name, x.Status.Phase, x.Status.Reason, x.Status.CompletionTime,
			namesOf(x.Spec.Packages), x.Spec.Remove, x.Status.Message,
		))
	}
	return strings.Join(out, "\n")
}

func namesOf(packages []v1alpha1.WantedPackage) []string {
	var out []string
	for _, p := range packages {
		out = append(out, p.Name+" "+p.Spec.Package)
	}
	return out
}

// A transaction of forty packages installs all of them, and returns all of them to their former version if one is not
// healthy in time.
func TestTransactionOfFortyPackages(t *testing.T) {
	lane.Full(t, "internal/controller.TestTransactionReturnsAllPackages")
	s := withExternalRuntimes(t)
	r := newRegistry(t)
	var install, update []v1alpha1.WantedPackage
	former := map[string]string{}
	for i := range 40 {
		name := fmt.Sprintf("forty-%02d", i)
		one, _ := r.push(t, "acme/"+name+":v1", configuration(name, name+".test", "one"))
		two, _ := r.push(t, "acme/"+name+":v2", configuration(name, name+".test", "two"))
		install, update = append(install, wantPackage(v1.ConfigurationKind, name, one)),
			append(update, wantPackage(v1.ConfigurationKind, name, two))
		former[name] = one
		t.Cleanup(func() { s.CleanUp(t, env.NewPackage(v1.ConfigurationKind, name, one)) })
	}
	never, _ := r.push(t, "acme/forty-p:v1", provider("forty-p", crd("forty-p.test", "Thing", "one")))
	s.start(t)
	began := time.Now()
	x := newTransaction("forty-install", install...)
	x.Spec.Deadline = &metav1.Duration{Duration: 2 * time.Minute}
	s.CreateTemporary(t, x)
	if status := untilEnded(t, s, x); status.Phase != v1alpha1.Succeeded {
		t.Fatalf("%s: %s", status.Phase, status.Message)
	}
	t.Logf("40 packages installed in %s", time.Since(began).Round(100*time.Millisecond))
	began = time.Now()
	x = newTransaction("forty-update", append(update, wantPackage(v1.ProviderKind, "forty-p", never))...)
	x.Spec.Deadline = &metav1.Duration{Duration: 20 * time.Second}
	s.CreateTemporary(t, x)
	if status := untilEnded(t, s, x); status.Phase != v1alpha1.Returned {
		t.Errorf("%s: %s", status.Phase, status.Message)
	}
	t.Logf("40 packages updated and returned in %s, 20 s of them waiting", time.Since(began).Round(100*time.Millisecond))
	for name, want := range former {
		if got := referenceOf(t, s, v1.ConfigurationKind, name); got != want {
			t.Errorf("%s is installed from %s, want %s", name, got, want)
		}
	}
	s.WaitGone(t, env.NewProvider("forty-p", never))
}
