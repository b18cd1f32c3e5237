package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// observer watches every change of the API server, so it knows the current state without a read. It
// records violations of these invariants, which hold at any time and after any fault:
//
//   - an object has its package among its owners, and at most one controller,
//   - an object or a revision is not deleted while its package exists,
//   - a package has at most one active revision,
//   - no object of a refused version exists.
type observer struct {
	mu        sync.Mutex
	instances map[string]*instance
	// known contains the objects of each instance, by kind and name.
	known map[string]map[string]client.Object
	// active contains the active revisions of each instance.
	active map[string][]string
	seen   []string
}

// observe starts an observer that stops with the test.
func observe(t testing.TB, c client.WithWatch) *observer {
	t.Helper()
	w := &observer{
		instances: map[string]*instance{}, known: map[string]map[string]client.Object{}, active: map[string][]string{},
	}
	for _, list := range lists() {
		w.watch(t, c, list)
	}
	return w
}

func (w *observer) watch(t testing.TB, c client.WithWatch, list client.ObjectList) {
	t.Helper()
	events, err := c.Watch(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			w.note(e)
		}
	}()
	t.Cleanup(func() {
		events.Stop()
		<-done
	})
}

func (w *observer) note(e apiwatch.Event) {
	o, ok := e.Object.(client.Object)
	if !ok || e.Type == apiwatch.Bookmark {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.instances[tokens.FindString(o.GetName())]
	if r == nil {
		return
	}
	key := fmt.Sprintf("%T %s %s", o, o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	if w.known[r.name][key] = o; e.Type == apiwatch.Deleted {
		delete(w.known[r.name], key)
	}
	switch o := o.(type) {
	case *unstructured.Unstructured:
		w.object(r, e.Type, o)
	case v1.PackageRevision:
		w.revision(r, e.Type, o)
	}
}

// snapshot returns the objects of an instance.
func (w *observer) snapshot(r *instance) snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var v snapshot
	for _, o := range w.known[r.name] {
		v.add(o)
	}
	return v
}

// add starts the observation of an instance.
func (w *observer) add(r *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[r.name], w.known[r.name] = r, map[string]client.Object{}
}

// forget ends the observation of an instance, before its package is deleted.
func (w *observer) forget(r *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.instances, r.name)
	delete(w.known, r.name)
}

// violations returns the violations by an instance since the last call.
func (w *observer) violations(r *instance) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out, rest []string
	for _, s := range w.seen {
		if strings.HasPrefix(s, r.name+" ") {
			out = append(out, s)
		} else {
			rest = append(rest, s)
		}
	}
	w.seen = rest
	return out
}

func (w *observer) violate(r *instance, format string, args ...any) {
	w.seen = append(w.seen, r.name+" "+fmt.Sprintf(format, args...))
}

func (w *observer) object(r *instance, e apiwatch.EventType, o client.Object) {
	what, _, _ := strings.Cut(o.GetName(), ".")
	var controllers, packages int
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			controllers++
		}
		if ref.Kind == r.scenario.kind && ref.Name == r.name {
			packages++
		}
	}
	leaving := e == apiwatch.Deleted || o.GetDeletionTimestamp() != nil
	switch {
	case slices.Contains(r.scenario.never, what):
		w.violate(r, "%s exists, and must not", what)
	case leaving && !r.scenario.removes:
		w.violate(r, "%s is deleted", what)
	case leaving:
	case len(o.GetOwnerReferences()) == 0:
		w.violate(r, "%s has no owner", what)
	case packages != 1 && !r.scenario.removes: // The API server removes references to a deleted package.
		w.violate(r, "%s has %d references to its package: %v", what, packages, o.GetOwnerReferences())
	case controllers > 1:
		w.violate(r, "%s has %d controllers", what, controllers)
	}
}

func (w *observer) revision(r *instance, e apiwatch.EventType, rev v1.PackageRevision) {
	active := slices.DeleteFunc(w.active[r.name], func(n string) bool { return n == rev.GetName() })
	if e == apiwatch.Deleted || rev.GetDeletionTimestamp() != nil {
		if !r.scenario.removes && !r.scenario.collects {
			w.violate(r, "revision %s is deleted", rev.GetName())
		}
	} else if rev.RevisionSpec().DesiredState == v1.RevisionActive {
		active = append(active, rev.GetName())
	}
	w.active[r.name] = active
	if len(active) > 1 && !r.scenario.bothActive {
		w.violate(r, "%d revisions are active at once", len(active))
	}
}
