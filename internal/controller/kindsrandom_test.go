package controller_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// Random changes of what needs kinds, while the manager is killed, or fails, at a random call, have the result of the
// same changes of a model: the kinds that something needs are active, those that were active stay unless they are to be
// deactivated, and none with a custom resource is ever deactivated.
func TestRandomChangesOfKinds(t *testing.T) {
	rounds, seed := 12, uint64(time.Now().UnixNano())
	if lane.IsFull() {
		rounds = 150
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s, network := newEnv(t), fault.New(fault.SingleSubject("manager"))
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return network.Transport(fault.Cluster, next) })
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
			toggle(model.policies, k, policy("random-"+strings.ToLower(k), crdOf(k)))
			return "policy " + k
		case 4:
			toggle(model.compositions, k, usingComposition("random-"+strings.ToLower(k), group, k))
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
	stop := s.start(t)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	stop()
	killed := 0
	for range rounds {
		stop = s.start(t)
		network.Set("manager", fault.Fault{
			Kind: []fault.Kind{fault.KilledBefore, fault.KilledAfter}[random.IntN(2)], Side: fault.Cluster, Call: random.IntN(4),
			Filter: func(c fault.Call) bool {
				return c.Method != http.MethodGet && c.Method != "WATCH" && (strings.Contains(c.Path, "/customresourcedefinitions") ||
					strings.Contains(c.Path, "/providerrevisions") || strings.Contains(c.Path, "/managedresource"))
			},
		})
		did := change()
		want := expect()
		eventually(t, "the manager is killed, or has done: "+did, func() bool {
			_, hit := network.Injected("manager")
			return hit || activeKinds(t, s, group) == want
		})
		if _, hit := network.Injected("manager"); hit {
			killed++
		}
		stop()
		network.Clear()
		stop = s.start(t)
		got := ""
		eventually(t, "after "+did+", the kinds "+want+" are active", func() bool {
			got = activeKinds(t, s, group)
			return got == want
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
		stop()
	}
	t.Logf("%d rounds, killed %d times", rounds, killed)
	s.start(t)
	for _, k := range kinds {
		if model.objects[k] {
			s.Delete(t, object(k))
		}
	}
	remove(t, s, p)
}
