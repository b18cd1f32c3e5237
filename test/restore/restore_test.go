package restore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// moment says when the package manager starts, seen from the restore.
type moment int

const (
	before moment = iota
	inTheMiddle
	after
)

// A cluster that comes back from a backup is what it was, with the same content
// although all tags stand for something else by now: nothing is lost, nothing is
// deleted, and nothing is left to do.
func TestRestore(t *testing.T) {
	w := world{name: "restored", group: "restored.test"}
	first := newStand(t)
	stop := first.start(t)
	packages := w.populate(t, first)
	settle(t, first, packages)
	saved := w.backup(t, first)
	stop()
	w.moveTags(t, first)
	for name, c := range map[string]struct {
		start  moment
		owners bool
		order  order
	}{
		"ManagerBefore":       {before, false, velero},
		"ManagerInTheMiddle":  {inTheMiddle, false, velero},
		"ManagerAfter":        {after, false, definitionsFirst},
		"StaleOwners":         {after, true, definitionsFirst},
		"StaleOwnersInOrder":  {before, true, velero},
		"StaleOwnersInMiddle": {inTheMiddle, true, velero},
	} {
		t.Run(name, func(t *testing.T) {
			w.lose(t, first)
			s := onNewMachine(t, first)
			release := func() {}
			if c.owners {
				release = holdGarbageCollector(t, s, w)
			}
			witness := watch(t, s, w)
			w.restore(t, s, saved, c.owners, c.order, c.start)
			check(t, s, w, packages, saved)
			release()
			// What the garbage collector thinks of it shows when it works again.
			collected(t, s)
			check(t, s, w, packages, saved)
			if gone := witness.deleted(); len(gone) > 0 {
				t.Errorf("deleted after the restore: %v", gone)
			}
			uninstall(t, s, w, packages)
		})
	}
}

// order is that in which a backup is written.
type order func([]*unstructured.Unstructured) []*unstructured.Unstructured

// onNewMachine is the stand with an empty package cache.
func onNewMachine(t *testing.T, old *stand) *stand {
	t.Helper()
	s := newStand(t)
	s.registry = old.registry
	return s
}

// restore writes a backup in an order, and starts the manager at a moment.
func (w world) restore(t *testing.T, s *stand, saved []*unstructured.Unstructured, owners bool, in order, start moment) {
	t.Helper()
	all := slices.Clone(saved)
	seed := rand.Uint64()
	t.Logf("shuffled by %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = in(all)
	if start == before {
		s.start(t)
	}
	for i, o := range all {
		if start == inTheMiddle && i == len(all)/2 {
			s.start(t)
		}
		restore(t, s, stripped(o, owners))
	}
	if start == after {
		s.start(t)
	}
}

// settle waits until all packages are as their specs want them.
func settle(t *testing.T, s *stand, packages []v1.Package) {
	t.Helper()
	for _, p := range packages {
		if p.PackageSpec().RevisionActivationPolicy == v1.ManualActivation {
			untilInstalled(t, s, p, corev1.ConditionFalse)
			continue
		}
		untilReady(t, s, p)
	}
}

// check checks that a cluster is as it was.
func check(t *testing.T, s *stand, w world, packages []v1.Package, saved []*unstructured.Unstructured) {
	t.Helper()
	settle(t, s, packages)
	until(t, "the cluster holds what it held", func() (string, bool) {
		diff := cmp.Diff(specs(saved), specs(w.backup(t, s)))
		return diff, diff == ""
	})
	until(t, "the owners are those that they were", func() (string, bool) {
		diff := cmp.Diff(owners(saved), owners(w.backup(t, s)))
		return diff, diff == ""
	})
	then, now := byKey(saved), byKey(w.backup(t, s))
	for name, o := range now {
		for _, field := range []string{"resolvedDigest", "currentRevision", "currentIdentifier"} {
			was, _, _ := unstructured.NestedString(then[name].Object, "status", field)
			is, _, _ := unstructured.NestedString(o.Object, "status", field)
			if was != is {
				t.Errorf("%s: status.%s is %q, and was %q", name, field, is, was)
			}
		}
	}
	until(t, "every owner is there", func() (string, bool) {
		missing := strangers(byKey(w.backup(t, s)))
		return fmt.Sprint(missing), len(missing) == 0
	})
	planner := s.planner(t)
	for _, p := range packages {
		plan, err := planner.Install(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if plan.HasChanges() {
			t.Errorf("of %s something is left to do: %+v", p.GetName(), plan)
		}
	}
}

// owners are those of objects, by their names, with a star for the controller.
func owners(all []*unstructured.Unstructured) map[string][]string {
	out := map[string][]string{}
	for name, o := range byKey(all) {
		for _, r := range o.GetOwnerReferences() {
			owner := r.Kind + "/" + r.Name
			if r.Controller != nil && *r.Controller {
				owner += "*"
			}
			out[name] = append(out[name], owner)
		}
		slices.Sort(out[name])
	}
	return out
}

// strangers are the owners of objects that are not there.
func strangers(all map[string]*unstructured.Unstructured) []string {
	var out []string
	for name, o := range all {
		for _, r := range o.GetOwnerReferences() {
			owner := all[r.Kind+"/"+r.Name]
			if owner == nil || owner.GetUID() != r.UID {
				out = append(out, fmt.Sprintf("%s is owned by %s %s with the UID %s", name, r.Kind, r.Name, r.UID))
			}
		}
	}
	return out
}

// uninstall checks that what was restored goes as it would have gone.
func uninstall(t *testing.T, s *stand, w world, packages []v1.Package) {
	t.Helper()
	for _, p := range packages {
		if err := s.client.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "everything goes with its package", func() (string, bool) {
		left := w.backup(t, s)
		return keys(left), len(left) == 0
	})
}

// witness sees what is deleted.
type witness struct {
	mu   sync.Mutex
	gone []string
}

func (w *witness) deleted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.gone)
}

// watch watches all objects of a world, but for resources of people, whose kinds are
// not there yet: who deletes one deletes its definition.
func watch(t *testing.T, s *stand, w world) *witness {
	t.Helper()
	out := &witness{}
	for _, gvk := range w.kinds() {
		if gvk.Group == w.group {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		events, err := s.client.Watch(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			for e := range events.ResultChan() {
				o, ok := e.Object.(client.Object)
				if ok && w.holds(o) && (e.Type == apiwatch.Deleted || o.GetDeletionTimestamp() != nil) {
					out.mu.Lock()
					out.gone = append(out.gone, fmt.Sprintf("%s/%s", gvk.Kind, o.GetName()))
					out.mu.Unlock()
				}
			}
		})
		t.Cleanup(func() {
			events.Stop()
			done.Wait()
		})
	}
	return out
}
