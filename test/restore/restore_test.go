package restore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// moment is the time at which the package manager starts, relative to the restore.
type moment int

const (
	before moment = iota
	inTheMiddle
	after
)

// A restored cluster has the same objects, owners and content as before, although all tags refer to
// other content. Nothing is deleted, and a plan contains no changes.
//
// hardening: J10
func TestRestore(t *testing.T) {
	f := fixture{name: "restored", group: "restored.test"}
	first := newCluster(t)
	manager := first.start(t)
	packages := f.populate(t, first)
	settle(t, first, packages)
	saved := f.backup(t, first)
	manager.Stop()
	f.moveTags(t, first)
	for name, tc := range map[string]struct {
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
			f.lose(t, first)
			c := onNewMachine(t, first)
			release := func() {}
			if tc.owners {
				release = holdGarbageCollector(t, c, f)
			}
			recorder := recordDeletions(t, c, f)
			f.restore(t, c, saved, tc.owners, tc.order, tc.start)
			check(t, c, f, packages, saved)
			release()
			waitGarbageCollection(t, c)
			check(t, c, f, packages, saved)
			if gone := recorder.deleted(); len(gone) > 0 {
				t.Errorf("deleted after the restore: %v", gone)
			}
			uninstall(t, c, f, packages)
		})
	}
}

// order sorts the objects of a backup.
type order func([]*unstructured.Unstructured) []*unstructured.Unstructured

// onNewMachine returns the cluster with an empty package cache.
func onNewMachine(t *testing.T, old *cluster) *cluster {
	t.Helper()
	c := newCluster(t)
	c.Registry = old.Registry
	return c
}

// restore writes a backup in the given order, and starts the manager at the given moment.
func (f fixture) restore(
	t *testing.T, c *cluster, saved []*unstructured.Unstructured, owners bool, in order, start moment,
) {
	t.Helper()
	all := slices.Clone(saved)
	seed := rand.Uint64()
	t.Logf("shuffled by %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = in(all)
	if start == before {
		c.start(t)
	}
	for i, o := range all {
		if start == inTheMiddle && i == len(all)/2 {
			c.start(t)
		}
		restore(t, c, stripped(o, owners))
	}
	if start == after {
		c.start(t)
	}
}

// settle waits until the status of all packages agrees with their specs.
func settle(t *testing.T, c *cluster, packages []v1.Package) {
	t.Helper()
	for _, p := range packages {
		if p.PackageSpec().RevisionActivationPolicy == v1.ManualActivation {
			untilInstalled(t, c, p, corev1.ConditionFalse)
			continue
		}
		untilReady(t, c, p)
	}
}

// check compares a cluster with its backup.
func check(t *testing.T, c *cluster, f fixture, packages []v1.Package, saved []*unstructured.Unstructured) {
	t.Helper()
	settle(t, c, packages)
	until(t, "all objects are restored", func() (string, bool) {
		diff := cmp.Diff(specs(saved), specs(f.backup(t, c)))
		return diff, diff == ""
	})
	until(t, "all owners are restored", func() (string, bool) {
		diff := cmp.Diff(owners(saved), owners(f.backup(t, c)))
		return diff, diff == ""
	})
	then, now := byKey(saved), byKey(f.backup(t, c))
	for name, o := range now {
		for _, field := range []string{"resolvedDigest", "currentRevision", "currentIdentifier"} {
			was, _, _ := unstructured.NestedString(then[name].Object, "status", field)
			is, _, _ := unstructured.NestedString(o.Object, "status", field)
			if was != is {
				t.Errorf("%s: status.%s is %q, and was %q", name, field, is, was)
			}
		}
	}
	until(t, "every owner exists", func() (string, bool) {
		missing := missingOwners(byKey(f.backup(t, c)))
		return fmt.Sprint(missing), len(missing) == 0
	})
	pl := c.planner(t)
	for _, p := range packages {
		plan, err := pl.Install(t.Context(), p, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if plan.HasChanges() {
			t.Errorf("the plan for %s contains changes: %+v", p.GetName(), plan)
		}
	}
}

// owners returns the owners of objects by the names of the objects. The controller has a star.
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

// missingOwners returns the owner references whose owner does not exist.
func missingOwners(all map[string]*unstructured.Unstructured) []string {
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

// uninstall deletes all packages and waits until their objects are deleted.
func uninstall(t *testing.T, c *cluster, f fixture, packages []v1.Package) {
	t.Helper()
	const answer = `{"metadata":{"annotations":{"` + v1.AnnotationOnDelete + `":"cascade=100"}}}`
	for _, p := range packages {
		if err := errors.Join(
			c.Client.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(answer))),
			c.Client.Delete(t.Context(), p),
		); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all objects are deleted", func() (string, bool) {
		left := f.backup(t, c)
		return keys(left), len(left) == 0
	})
}

// deletionRecorder records the names of deleted objects.
type deletionRecorder struct {
	mu   sync.Mutex
	gone []string
}

func (r *deletionRecorder) deleted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.gone)
}

// recordDeletions watches all objects of a fixture except for its custom resources: their kinds do
// not exist yet, and they are deleted only together with their CRD.
func recordDeletions(t *testing.T, c *cluster, f fixture) *deletionRecorder {
	t.Helper()
	out := &deletionRecorder{}
	for _, gvk := range f.kinds() {
		if gvk.Group == f.group {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		events, err := c.Client.Watch(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			for e := range events.ResultChan() {
				o, ok := e.Object.(client.Object)
				if ok && f.contains(o) && (e.Type == apiwatch.Deleted || o.GetDeletionTimestamp() != nil) {
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
