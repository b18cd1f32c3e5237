package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// release publishes a version of a provider with one CRD that contains the version.
func (w *dependencyEnv) release(t testing.TB, name, tag string, needs ...string) string {
	t.Helper()
	return w.pushWith(t, "Provider", name+":"+tag, crd(name+".dep.test", "Thing", tag), needs...)
}

func crdName(name string) string { return "things." + name + ".dep.test" }

// newEnvWithDeadline returns a dependencyEnv with an activation deadline.
func newEnvWithDeadline(t testing.TB, upgrades graph.Policy, deadline time.Duration) *dependencyEnv {
	t.Helper()
	s := newEnv(t)
	s.options.ActivationDeadline = deadline
	return startDependencyEnv(t, s, controller.Dependencies{Upgrades: upgrades})
}

// provider creates the Provider dep-NAME at a version.
func (w *dependencyEnv) provider(t *testing.T, name, tag string) *v1.Provider {
	t.Helper()
	p := env.NewProvider("dep-"+name, w.repository(name)+":"+tag)
	w.CreateTemporary(t, p)
	untilSettled(t, w.testEnv, p)
	return p
}

// waitDependency returns a package that was installed for others, once it is settled at a
// version.
func (w *dependencyEnv) waitDependency(t *testing.T, name, tag string) *v1.Provider {
	t.Helper()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-" + name}}
	w.WaitPackage(t, p, "is ready at "+tag, func() bool {
		ready := p.GetCondition(v1.TypeReady)
		return strings.HasSuffix(p.Spec.Package, ":"+tag) && ready.Status == corev1.ConditionTrue &&
			ready.ObservedGeneration == p.Generation
	})
	w.waitEstablished(t, name, tag)
	return p
}

// waitEstablished checks the version of the established CRD of a provider.
func (w *dependencyEnv) waitEstablished(t *testing.T, name, tag string) {
	t.Helper()
	wait.Until(t, limit, name+" is established at "+tag, func() (string, bool) {
		d := newCRD()
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: crdName(name)}, d); err != nil {
			return err.Error(), false
		}
		got := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description
		return got, got == tag
	})
}

func (w *dependencyEnv) setVersion(t *testing.T, p *v1.Provider, tag string) {
	t.Helper()
	env.Update(t, w.Env, p, func(p *v1.Provider) {
		p.Spec.Package = p.Spec.Package[:strings.LastIndex(p.Spec.Package, ":")+1] + tag
	})
}

// snapshot is the state after one change in the cluster: the versions of CRDs, and
// the versions of the providers that were ready.
type snapshot struct {
	version            int64
	change             string
	established, ready map[string]string
}

// recorder records the CRDs and revisions of the providers of a dependencyEnv, ordered by resource
// version.
type recorder struct {
	mu      sync.Mutex
	entries []stateChange
}

type stateChange struct {
	version     int64
	readiness   bool
	name, value string
}

func (w *dependencyEnv) recordChanges(t *testing.T) *recorder {
	t.Helper()
	d := &recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	var followers sync.WaitGroup
	for _, list := range []client.ObjectList{&apiextensionsv1.CustomResourceDefinitionList{}, &v1.ProviderRevisionList{}} {
		events, err := w.Client.Watch(ctx, list)
		if err != nil {
			t.Fatal(err)
		}
		followers.Go(func() {
			defer events.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case e, ok := <-events.ResultChan():
					if !ok {
						return
					}
					d.record(e)
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		followers.Wait()
	})
	return d
}

func (d *recorder) record(e watch.Event) {
	var n stateChange
	switch o := e.Object.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		n.name = strings.TrimSuffix(strings.TrimPrefix(o.Name, "things."), ".dep.test")
		n.value = o.Spec.Versions[0].Schema.OpenAPIV3Schema.Description
	case *v1.ProviderRevision:
		n.readiness, n.name = true, strings.TrimPrefix(o.Labels[v1.LabelPackage], "dep-")
		ready := o.GetCondition(v1.TypeReady)
		if o.Spec.DesiredState != v1.RevisionActive || ready.Status != corev1.ConditionTrue ||
			o.Status.ObservedGeneration != o.Generation {
			return
		}
		n.value = o.Spec.Image[strings.LastIndex(o.Spec.Image, ":")+1:]
	default:
		return
	}
	if e.Type == watch.Deleted {
		return
	}
	n.version, _ = strconv.ParseInt(e.Object.(client.Object).GetResourceVersion(), 10, 64)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, n)
}

// snapshots returns the state after each change, in order.
func (d *recorder) snapshots() []snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortFunc(d.entries, func(a, b stateChange) int { return cmp.Compare(a.version, b.version) })
	var out []snapshot
	established, able := map[string]string{}, map[string]string{}
	for _, e := range d.entries {
		if e.readiness {
			able[e.name] = e.value
		} else {
			established[e.name] = e.value
		}
		out = append(out, snapshot{e.version, fmt.Sprintf("%+v", e), clone(established), clone(able)})
	}
	return out
}

func clone(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// checkOrder checks that the objects of a provider never had a version while another provider was
// not ready, or not established, at the version that it must have before.
func (d *recorder) checkOrder(t *testing.T, name, tag, without, at string) {
	t.Helper()
	seen := false
	for _, m := range d.snapshots() {
		if m.established[name] != tag {
			continue
		}
		seen = true
		if m.established[without] != at || m.ready[without] != at {
			t.Fatalf(
				"%s is established at %s, and %s is established at %q and ready at %q (%s)", name, tag, without,
				m.established[without], m.ready[without], m.change,
			)
		}
	}
	if !seen {
		t.Errorf("the changes does not know of %s at %s", name, tag)
	}
}

// A package and its dependencies are upgraded together, in every form of the change:
// dependencies first, and nothing of the dependent is written before they are healthy.
// Waiting packages are reconciled by events: the retry interval is longer than the time of
// the test.
func TestDependenciesAreUpgradedBeforeTheirDependent(t *testing.T) {
	for name, tc := range map[string]struct {
		policy graph.Policy
		// packages are the versions of each: its needs in the first one and in the second.
		packages map[string][2][]string
		// before are pairs of which the first one waits for the second.
		before [][2]string
		down   bool
	}{
		"one": {
			policy:   graph.Upgrade,
			packages: map[string][2][]string{"root": {{"leaf <v2"}, {"leaf >=v2"}}, "leaf": {}},
			before:   [][2]string{{"root", "leaf"}},
		},
		"chain": {
			policy: graph.Upgrade,
			packages: map[string][2][]string{
				"root": {{"mid <v2"}, {"mid >=v2"}}, "mid": {{"leaf <v2"}, {"leaf >=v2"}}, "leaf": {},
			},
			before: [][2]string{{"root", "mid"}, {"mid", "leaf"}},
		},
		"diamond": {
			policy: graph.Upgrade,
			packages: map[string][2][]string{
				"root": {{"left <v2", "right <v2"}, {"left >=v2", "right >=v2"}}, "left": {{"leaf <v2"}, {"leaf >=v2"}},
				"right": {{"leaf <v2"}, {"leaf >=v2"}}, "leaf": {},
			},
			before: [][2]string{{"root", "left"}, {"root", "right"}, {"left", "leaf"}, {"right", "leaf"}},
		},
		"down": {
			policy:   graph.UpgradeOrDowngrade,
			packages: map[string][2][]string{"root": {{"leaf <v2"}, {"leaf >=v2"}}, "leaf": {}},
			before:   [][2]string{{"root", "leaf"}},
			down:     true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDependencyEnv(t, tc.policy)
			from, to := "v1.0.0", "v2.0.0"
			for name, needs := range tc.packages {
				w.release(t, name, from, needs[0]...)
				w.release(t, name, to, needs[1]...)
			}
			if tc.down {
				from, to = to, from
			}
			root := w.provider(t, "root", from)
			changes := w.recordChanges(t)
			w.setVersion(t, root, to)
			untilSettled(t, w.testEnv, root)
			for name := range tc.packages {
				if name != "root" {
					w.waitDependency(t, name, to)
				}
				w.waitEstablished(t, name, to)
			}
			for _, pair := range tc.before {
				changes.checkOrder(t, pair[0], to, pair[1], to)
			}
			w.assertUnchanged(t)
		})
	}
}

// An unavailable dependency, or one that cannot be established, is detected before
// anything changes. The condition of the dependent contains the reason, and the
// dependent is rolled back after the activation deadline.
func TestFailedDependencyUpgradeChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		// next publishes version 2 of the leaf and of the root, one of which is defective.
		next func(t *testing.T, w *dependencyEnv)
		// why are parts of the dependent's condition message.
		why []string
	}{
		"no content": {func(t *testing.T, w *dependencyEnv) {
			w.release(t, "leaf", "v2.0.0")
			w.release(t, "root", "v2.0.0", "leaf >=v2")
			w.registry.setFault(func(rw http.ResponseWriter, r *http.Request) bool {
				return strings.Contains(r.URL.Path, "/dep/leaf/") && strings.Contains(r.URL.Path, "/blobs/") &&
					answer(http.StatusServiceUnavailable)(rw, r)
			})
		}, []string{"RegistryUnavailable: ", "dep/leaf"}},
		"deleted content": {func(t *testing.T, w *dependencyEnv) {
			w.release(t, "leaf", "v2.0.0")
			w.release(t, "root", "v2.0.0", "leaf >=v2")
			w.registry.setFault(func(rw http.ResponseWriter, r *http.Request) bool {
				return strings.HasSuffix(r.URL.Path, "/dep/leaf/manifests/v2.0.0") && answer(http.StatusNotFound)(rw, r)
			})
		}, []string{"Unsolvable: ", "dep/leaf >=v2"}},
		"damaged objects": {func(t *testing.T, w *dependencyEnv) {
			w.pushWith(
				t, "Provider", "leaf:v2.0.0",
				strings.Replace(crd("leaf.dep.test", "Thing", "v2.0.0"), "scope: Cluster", "scope: Everywhere", 1),
			)
			w.release(t, "root", "v2.0.0", "leaf >=v2")
		}, []string{"dep/leaf:v2.0.0", "which dep-root needs", "scope"}},
		"objects of the leaf with another owner": {func(t *testing.T, w *dependencyEnv) {
			w.release(t, "holder", "v1.0.0")
			w.provider(t, "holder", "v1.0.0")
			w.pushWith(t, "Provider", "leaf:v2.0.0", crd("leaf.dep.test", "Thing", "v2.0.0")+
				crd("holder.dep.test", "Thing", "leaf"))
			w.release(t, "root", "v2.0.0", "leaf >=v2")
		}, []string{"ForeignOwner: ", "dep/leaf contains, belongs to Provider/dep-holder", "things.holder.dep.test"}},
		"objects of the root with another owner": {func(t *testing.T, w *dependencyEnv) {
			w.release(t, "holder", "v1.0.0")
			w.provider(t, "holder", "v1.0.0")
			w.release(t, "leaf", "v2.0.0")
			w.pushWith(t, "Provider", "root:v2.0.0", crd("root.dep.test", "Thing", "v2.0.0")+
				crd("holder.dep.test", "Thing", "root"), "leaf >=v2")
		}, []string{"ForeignOwner: ", "things.holder.dep.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvWithDeadline(t, graph.Upgrade, 2*time.Second)
			w.release(t, "leaf", "v1.0.0")
			w.release(t, "root", "v1.0.0", "leaf <v2")
			root := w.provider(t, "root", "v1.0.0")
			tc.next(t, w)
			leaf := w.waitDependency(t, "leaf", "v1.0.0")
			changes := w.recordChanges(t)
			w.setVersion(t, root, "v2.0.0")
			w.WaitPackage(t, root, "is rolled back", func() bool {
				return root.Status.Rollback != nil && rolledBack(root)
			})
			for _, part := range tc.why {
				if !strings.Contains(root.Status.Rollback.Message, part) {
					t.Errorf("the message does not contain %q: %s", part, root.Status.Rollback.Message)
				}
			}
			untilStates(t, w.testEnv, root, "v2.0.0:2", "v1.0.0:3*")
			now := w.waitDependency(t, "leaf", "v1.0.0")
			if leaf.Generation != now.Generation {
				t.Errorf("the leaf was changed: its generation was %d and is %d", leaf.Generation, now.Generation)
			}
			for _, m := range changes.snapshots() {
				if m.established["root"] == "v2.0.0" || m.established["leaf"] == "v2.0.0" {
					t.Errorf("an object has changed: %s", m.change)
				}
			}
			w.assertUnchanged(t)
		})
	}
}

// A problem that appears only during an upgrade reverts it: dependencies that were
// upgraded for a version are rolled back together with that version.
func TestDependencyUpgradesAreRolledBackTogether(t *testing.T) {
	for name, tc := range map[string]struct{ leaf, root string }{
		"the leaf does not become healthy": {crd("leaf.dep.test", "Thing", denied), crd("root.dep.test", "Thing", "v2.0.0")},
		"the root does not become healthy": {crd("leaf.dep.test", "Thing", "v2.0.0"), crd("root.dep.test", "Thing", denied)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvWithDeadline(t, graph.Upgrade, 12*time.Second)
			denyCRDs(t, w.testEnv)
			w.release(t, "leaf", "v1.0.0")
			w.release(t, "root", "v1.0.0", "leaf <v2")
			w.pushWith(t, "Provider", "leaf:v2.0.0", tc.leaf)
			w.pushWith(t, "Provider", "root:v2.0.0", tc.root, "leaf >=v2")
			root := w.provider(t, "root", "v1.0.0")
			w.waitDependency(t, "leaf", "v1.0.0")
			w.setVersion(t, root, "v2.0.0")
			w.WaitPackage(t, root, "is rolled back", func() bool { return root.Status.Rollback != nil && rolledBack(root) })
			if message := root.Status.Rollback.Message; !strings.Contains(message, "AdmissionDenied") {
				t.Errorf("the reason is missing: %s", message)
			}
			if root.Status.Rollback.RetryTime == nil {
				t.Error("the upgrade is not tried again")
			}
			leaf := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-leaf"}}
			w.WaitPackage(t, leaf, "runs the version before", func() bool {
				a := leaf.Status.Activation
				return a != nil && a.Healthy && a.Revision == activeAt(t, w, leaf, "v1.0.0")
			})
			w.waitEstablished(t, "leaf", "v1.0.0")
			w.waitEstablished(t, "root", "v1.0.0")
			w.WaitPackage(t, root, "has its dependencies", func() bool {
				for _, rev := range w.Revisions(t, root) {
					s := rev.RevisionStatus()
					if rev.RevisionSpec().DesiredState == v1.RevisionActive {
						return rev.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue && s.InvalidDependencies == 0
					}
				}
				return false
			})
			// A later requirement of another package does not start the abandoned upgrade
			// again.
			w.push(t, "Provider", "other:v1.0.0")
			third := w.config(t, "third", w.push(t, "Configuration", "third:v1.0.0", "other", "leaf"))
			w.WaitHealthy(t, third)
			w.waitEstablished(t, "leaf", "v1.0.0")
			if activeAt(t, w, leaf, "v1.0.0") == "none" {
				t.Error("the leaf has changed again")
			}
			w.assertUnchanged(t)
		})
	}
}

// activeAt returns the active revision of a package if that has a version.
func activeAt(t *testing.T, w *dependencyEnv, p v1.Package, tag string) string {
	t.Helper()
	for _, rev := range w.Revisions(t, p) {
		if rev.RevisionSpec().DesiredState == v1.RevisionActive && strings.HasSuffix(rev.RevisionSpec().Image, ":"+tag) {
			return rev.GetName()
		}
	}
	return "none"
}

// With the upgrade policy None dependencies do not change: the condition of the
// dependent contains the command to run, and the install continues after a user has
// run it. Its constraints count from then on.
func TestUsersUpgradeDependenciesUnderPolicyNone(t *testing.T) {
	w := newDependencyEnv(t, graph.None)
	w.release(t, "leaf", "v1.0.0")
	w.release(t, "root", "v1.0.0", "leaf <v2")
	w.release(t, "leaf", "v2.0.0")
	w.release(t, "root", "v2.0.0", "leaf >=v2")
	root := w.provider(t, "root", "v1.0.0")
	leaf := w.waitDependency(t, "leaf", "v1.0.0")
	changes := w.recordChanges(t)
	w.setVersion(t, root, "v2.0.0")
	w.WaitCondition(
		t, root, v1.TypeHealthy, corev1.ConditionFalse,
		"dep/leaf is installed at v1.0.0, but >=v2 is needed. Update the dependency",
	)
	if root.GetCondition(v1.TypeStalled).Status != corev1.ConditionTrue {
		t.Error("it does not wait for a user")
	}
	w.waitEstablished(t, "root", "v1.0.0")
	w.setVersion(t, leaf, "v2.0.0")
	untilSettled(t, w.testEnv, root)
	w.waitEstablished(t, "root", "v2.0.0")
	changes.checkOrder(t, "root", "v2.0.0", "leaf", "v2.0.0")
	w.setVersion(t, leaf, "v1.0.0")
	w.WaitCondition(t, root, v1.TypeHealthy, corev1.ConditionFalse, "DependencyVersion: ")
	w.setVersion(t, leaf, "v2.0.0")
	untilSettled(t, w.testEnv, root)
	w.assertUnchanged(t)
}
