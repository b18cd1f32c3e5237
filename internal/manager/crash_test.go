package manager_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/plane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

var errCrashed = errors.New("the process was killed")

// crasher lets the first calls of a manager through. The next write is the last
// thing that the API server hears of it: either it does not arrive, or it is
// carried out and the answer is lost. After that nothing arrives any more.
type crasher struct {
	mu        sync.Mutex
	left      int
	commits   bool
	dead      bool
	crashed   chan struct{}
	transport http.RoundTripper
}

func (c *crasher) RoundTrip(r *http.Request) (*http.Response, error) {
	pass, last := c.step(r)
	if !pass && !last {
		return nil, errCrashed
	}
	if last {
		defer close(c.crashed)
		if c.commits {
			if res, err := c.transport.RoundTrip(r); err == nil {
				res.Body.Close()
			}
		}
		return nil, errCrashed
	}
	return c.transport.RoundTrip(r)
}

// step says whether a call passes, and whether it is the one that is cut off.
func (c *crasher) step(r *http.Request) (pass, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false, false
	}
	if !ours(r) {
		return true, false
	}
	if c.left > 0 {
		c.left--
		return true, false
	}
	c.dead = true
	return false, true
}

// ours are the writes of an install. Events are no part of its state.
func ours(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events")
}

// A manager that is killed at any of its writes leaves a cluster that the next
// one brings to the same end.
func TestCrashAtEveryWriteOfAnInstallAndAnUpgrade(t *testing.T) {
	cfg := cluster.Start(t)
	s := newShelf()
	const first, second = "registry.example.com/test/crash:v1.0.0", "registry.example.com/test/crash:v2.0.0"
	s.put(first, provider("crash", crd("crash.test", "Kept", "one"), crd("crash.test", "Dropped", "one")))
	s.put(second, provider("crash", crd("crash.test", "Kept", "two"), crd("crash.test", "Added", "two")))
	plane.Run(t, cfg, s)() // installs the package API, which is not what is tested here
	c := plane.Client(t, cfg)

	for _, commits := range []bool{false, true} {
		for n := 0; ; n++ {
			crashed := crashRound(t, cfg, c, s, first, second, n, commits)
			if !crashed {
				t.Logf("answers lost %v: %d writes, each of them cut off once", commits, n)
				break
			}
		}
	}
}

// crashRound installs and upgrades a package with a manager that is killed at
// write n, and finishes with one that is not. It says whether n was reached.
func crashRound(t *testing.T, cfg *rest.Config, c client.Client, s *shelf, first, second string, n int, commits bool) bool {
	t.Helper()
	killer := &crasher{left: n, commits: commits, crashed: make(chan struct{})}
	doomed := rest.CopyConfig(cfg)
	doomed.Wrap(func(next http.RoundTripper) http.RoundTripper { killer.transport = next; return killer })
	stop := plane.Run(t, doomed, s)

	p := newProvider("crash", first)
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	reached := func() bool { return untilCrashOrHealthy(t, c, killer, first) }
	crashed := reached()
	if !crashed {
		upgrade(t, c, p, second)
		crashed = untilCrashOrHealthy(t, c, killer, second)
	}
	stop()

	defer plane.Run(t, cfg, s)()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if p.Spec.Package == first {
		untilInstalled(t, c, first)
		upgrade(t, c, p, second)
	}
	untilInstalled(t, c, second)
	checkEnd(t, c, n)
	removeCrash(t, c, p)
	return crashed
}

func upgrade(t *testing.T, c client.Client, p *v1.Provider, ref string) {
	t.Helper()
	wait.Until(t, limit, "the package is changed", func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		p.Spec.Package = ref
		err := c.Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
}

func installedAt(t *testing.T, c client.Client, ref string) (string, bool) {
	t.Helper()
	p := &v1.Provider{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "crash"}, p); err != nil {
		return err.Error(), false
	}
	h := p.GetCondition(v1.TypeHealthy)
	return fmt.Sprintf("%+v", p.Status), p.Status.CurrentIdentifier == ref && h.Status == corev1.ConditionTrue && h.ObservedGeneration == p.Generation && settledRevisions(t, c, p.Status.CurrentRevision)
}

// settledRevisions says whether the current revision is active and healthy, and
// every other one has let go.
func settledRevisions(t *testing.T, c client.Client, current string) bool {
	t.Helper()
	list := &v1.ProviderRevisionList{}
	if err := c.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: "crash"}); err != nil {
		return false
	}
	for _, r := range list.Items {
		active := r.Spec.DesiredState == v1.RevisionActive
		if active != (r.Name == current) || r.GetCondition(v1.TypeRevisionHealthy).Status != corev1.ConditionTrue {
			return false
		}
	}
	return len(list.Items) > 0
}

func untilInstalled(t *testing.T, c client.Client, ref string) {
	t.Helper()
	wait.Until(t, limit, "the restarted manager has installed "+ref, func() (string, bool) { return installedAt(t, c, ref) })
}

func untilCrashOrHealthy(t *testing.T, c client.Client, killer *crasher, ref string) (crashed bool) {
	t.Helper()
	wait.Until(t, limit, "the manager is killed or done", func() (string, bool) {
		select {
		case <-killer.crashed:
			crashed = true
			return "", true
		default:
			return installedAt(t, c, ref)
		}
	})
	return crashed
}

// checkEnd compares the cluster with what an undisturbed install and upgrade
// leave.
func checkEnd(t *testing.T, c client.Client, n int) {
	t.Helper()
	list := &v1.ProviderRevisionList{}
	if err := c.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: "crash"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 {
		t.Fatalf("write %d: %d revisions, want 2", n, len(list.Items))
	}
	one, two := list.Items[0], list.Items[1]
	if one.Spec.Revision > two.Spec.Revision {
		one, two = two, one
	}
	if one.Spec.Revision != 1 || two.Spec.Revision != 2 {
		t.Errorf("write %d: revisions are numbered %d and %d", n, one.Spec.Revision, two.Spec.Revision)
	}
	rev1, rev2 := "ProviderRevision/"+one.Name, "ProviderRevision/"+two.Name
	want := map[string][]string{
		"kepts.crash.test":    {rev1, "Provider/crash", rev2 + "*"},
		"droppeds.crash.test": {rev1, "Provider/crash"},
		"addeds.crash.test":   {rev2 + "*", "Provider/crash"},
	}
	for name, owned := range want {
		wait.Until(t, limit, fmt.Sprintf("write %d: the owners of %s are %v", n, name, owned), func() (string, bool) {
			got := owners(t, c, name)
			return fmt.Sprint(got), cmp.Equal(owned, got)
		})
	}
}

func removeCrash(t *testing.T, c client.Client, p *v1.Provider) {
	t.Helper()
	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kepts.crash.test", "droppeds.crash.test", "addeds.crash.test"} {
		wait.Until(t, limit, name+" is gone", func() (string, bool) {
			err := c.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
			return fmt.Sprint(err), apierrors.IsNotFound(err)
		})
	}
}
