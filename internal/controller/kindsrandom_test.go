package controller_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// crew are managers of which one works and the others take over. Each can be killed at a call.
type crew []*crewMember

type crewMember struct {
	*testEnv
	network *fault.Network
	terms   int
	stop    func()
}

// newCrew starts managers of the cluster of s.
func newCrew(t *testing.T, s *testEnv, size int) crew {
	t.Helper()
	namespaced(t, s)
	all := make(crew, size)
	for i := range all {
		m := &crewMember{openEnv(t, rest.CopyConfig(s.Config), t.TempDir()), fault.New(fault.SingleSubject("manager")), 0, nil}
		m.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return m.network.Transport(fault.Cluster, next) })
		all[i] = m
		if size > 1 {
			m.options.LeaderElection = &leader.Election{Duration: 3 * time.Second}
		}
		manager := m.begin(t, i)
		if i == 0 {
			manager.WaitReady(t)
		}
	}
	return all
}

// begin starts the manager as a new process.
func (m *crewMember) begin(t *testing.T, i int) *env.Manager {
	t.Helper()
	if e := m.options.LeaderElection; e != nil {
		m.terms++
		e.Identity = fmt.Sprintf("manager-%d-%d", i, m.terms)
	}
	content, manager := m.launch(t)
	m.stop = sync.OnceFunc(func() {
		if err := errors.Join(manager.Close(), content.Close()); err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(m.stop)
	return manager
}

// arm makes the manager that works get a fault.
func (c crew) arm(f fault.Fault) {
	for _, m := range c {
		m.network.Set("manager", f)
	}
}

// isHit reports whether a manager got the fault.
func (c crew) isHit() bool {
	return slices.ContainsFunc(c, func(m *crewMember) bool {
		_, hit := m.network.Injected("manager")
		return hit
	})
}

// replace starts new processes in place of the managers that got the fault, or of a random one.
func (c crew) replace(t *testing.T, random *rand.Rand) {
	t.Helper()
	for _, m := range c {
		m.network.Disarm("manager")
	}
	wasHit, chosen := c.isHit(), random.IntN(len(c))
	for i, m := range c {
		if _, hit := m.network.Injected("manager"); hit || !wasHit && i == chosen {
			m.stop()
			m.network.Clear()
			m.begin(t, i)
		}
	}
}

// Random changes of what needs kinds, while the manager is killed, or fails, at a random call, have the result of the
// same changes of a model: the kinds that something needs are active, those that were active stay unless they are to be
// deactivated, and none with a custom resource is ever deactivated.
func TestRandomChangesOfKinds(t *testing.T) { testRandomKinds(t, 1, 12, 150) }

// The same holds for two managers that take over from each other, also when the one that works is killed.
func TestRandomChangesOfKindsWithTwoManagers(t *testing.T) { testRandomKinds(t, 2, 6, 60) }

func testRandomKinds(t *testing.T, managers, rounds, full int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if lane.IsFull() {
		rounds = full
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newEnv(t)
	r := newRegistry(t)
	const group = "randomkinds.test"
	kinds := []string{"Alpha", "Beta", "Gamma", "Delta"}
	crdOf := func(kind string) string { return strings.ToLower(kind) + "s." + group }
	var references []string
	for _, text := range []string{"one", "two"} {
		var crds []string
		for _, k := range kinds {
			crds = append(crds, strings.Replace(managed(group, k), "description: one", "description: "+text, 1))
		}
		ref, _ := r.push(t, "acme/randomkinds:"+text, safeProvider("randomkinds", append(crds, crd(group, "Config", text))...))
		references = append(references, ref)
	}
	p := choosing("randomkinds", references[0], "policies")
	model := struct {
		named, dropped, policies, compositions map[string]bool
		used                                   bool
		active, objects                        map[string]bool
	}{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, false, map[string]bool{}, map[string]bool{}}
	pick := func() string { return kinds[random.IntN(len(kinds))] }
	// annotate writes the choice of the model.
	annotate := func() {
		t.Helper()
		c := activation.Choice{Used: model.used}
		var dropped []string
		for _, k := range kinds {
			if model.named[k] {
				c.Patterns = append(c.Patterns, crdOf(k))
			}
			if model.dropped[k] {
				dropped = append(dropped, crdOf(k))
			}
		}
		env.Update(t, s.Env, p, func(p *v1.Provider) {
			p.Annotations[activation.AnnotationKinds] = c.String()
			p.Annotations[activation.AnnotationDeactivate] = strings.Join(dropped, ",")
		})
	}
	toggle := func(set map[string]bool, k string, create *unstructured.Unstructured) {
		t.Helper()
		if set[k] {
			s.Delete(t, create)
		} else {
			s.Create(t, create)
		}
		set[k] = !set[k]
	}
	object := func(k string) *unstructured.Unstructured { return instance(group, k) }
	policyOf := func(k string) *unstructured.Unstructured { return policy("random-"+strings.ToLower(k), crdOf(k)) }
	compositionOf := func(k string) *unstructured.Unstructured {
		return usingComposition("random-"+strings.ToLower(k), group, k)
	}
	change := func() string {
		switch k := pick(); random.IntN(7) {
		case 0:
			model.named[k] = !model.named[k]
			annotate()
			return "name " + k
		case 1, 2:
			model.dropped[k] = !model.dropped[k]
			annotate()
			return "deactivate " + k
		case 3:
			toggle(model.policies, k, policyOf(k))
			return "policy " + k
		case 4:
			toggle(model.compositions, k, compositionOf(k))
			return "composition " + k
		case 5:
			model.used = !model.used
			annotate()
			return fmt.Sprint("used ", model.used)
		default:
			if model.active[k] {
				toggle(model.objects, k, object(k))
				return "object " + k
			}
			next := references[random.IntN(2)]
			env.Update(t, s.Env, p, func(p *v1.Provider) { p.Spec.Package = next })
			return "update to " + next
		}
	}
	// expect updates the active kinds of the model.
	expect := func() string {
		out := []string{"configs"}
		for _, k := range kinds {
			needed := model.named[k] || model.policies[k] || model.used && model.compositions[k]
			model.active[k] = needed || model.active[k] && (!model.dropped[k] || model.objects[k])
			if model.active[k] {
				out = append(out, strings.ToLower(k)+"s")
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	running := newCrew(t, s, managers)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	for _, k := range kinds {
		t.Cleanup(func() { s.Delete(t, policyOf(k), compositionOf(k)) })
	}
	killed := 0
	for range rounds {
		running.arm(fault.Fault{
			Kind: []fault.Kind{fault.KilledBefore, fault.KilledAfter}[random.IntN(2)], Side: fault.Cluster, Call: random.IntN(4),
			Filter: func(c fault.Call) bool {
				return c.Method != http.MethodGet && c.Method != "WATCH" && (strings.Contains(c.Path, "/customresourcedefinitions") ||
					strings.Contains(c.Path, "/providerrevisions") || strings.Contains(c.Path, "/managedresource"))
			},
		})
		did := change()
		want := expect()
		eventually(t, "the manager is killed, or has done: "+did, func() bool {
			return running.isHit() || activeKinds(t, s, group) == want
		})
		if running.isHit() {
			killed++
		}
		running.replace(t, random)
		wait.Until(t, limit, "after "+did+", the kinds "+want+" are active", func() (string, bool) {
			got := activeKinds(t, s, group)
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
			return fmt.Sprint(got, err, p.Annotations, p.Status.Conditions), got == want
		})
		waitReconciled(t, s.Env, p)
		untilSettled(t, s, p)
		for _, k := range kinds {
			if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "one"}, object(k)); model.objects[k] && apierrors.IsNotFound(err) {
				t.Fatalf("after %s, the custom resource of %s is gone", did, k)
			}
		}
		if now := activeKinds(t, s, group); now != want {
			t.Fatalf("after %s, the kinds %s are active, want %s", did, now, want)
		}
	}
	t.Logf("%d rounds, killed %d times", rounds, killed)
	for _, k := range kinds {
		if model.objects[k] {
			s.Delete(t, object(k))
		}
	}
	remove(t, s, p)
}
