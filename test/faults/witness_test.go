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

// witness watches every change that the API server makes, and so knows what is
// there without asking. It writes down what must not be at any time, whatever
// happens to the package manager:
//
//   - an object without its package among its owners, or with two controllers,
//   - an object or a revision that goes away while its package stays,
//   - two active revisions of a package,
//   - an object of a version that is refused.
type witness struct {
	mu     sync.Mutex
	rounds map[string]*round
	// known is what there is of each round, by kind and name.
	known map[string]map[string]client.Object
	// active are the active revisions of each round.
	active map[string][]string
	seen   []string
}

// watchAll starts a witness that ends with the test.
func watchAll(t testing.TB, c client.WithWatch) *witness {
	t.Helper()
	w := &witness{rounds: map[string]*round{}, known: map[string]map[string]client.Object{}, active: map[string][]string{}}
	for _, list := range lists() {
		w.watch(t, c, list)
	}
	return w
}

func (w *witness) watch(t testing.TB, c client.WithWatch, list client.ObjectList) {
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

func (w *witness) note(e apiwatch.Event) {
	o, ok := e.Object.(client.Object)
	if !ok || e.Type == apiwatch.Bookmark {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rounds[tokens.FindString(o.GetName())]
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

// view is what there is of a round, as far as the API server has told.
func (w *witness) view(r *round) view {
	w.mu.Lock()
	defer w.mu.Unlock()
	var v view
	for _, o := range w.known[r.name] {
		v.add(o)
	}
	return v
}

// expect makes the witness look at a round.
func (w *witness) expect(r *round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds[r.name], w.known[r.name] = r, map[string]client.Object{}
}

// forget ends that, before the package of a round is taken away.
func (w *witness) forget(r *round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rounds, r.name)
	delete(w.known, r.name)
}

// against gives what was seen against a round since the last time.
func (w *witness) against(r *round) []string {
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

func (w *witness) say(r *round, format string, args ...any) {
	w.seen = append(w.seen, r.name+" "+fmt.Sprintf(format, args...))
}

func (w *witness) object(r *round, e apiwatch.EventType, o client.Object) {
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
		w.say(r, "%s exists, which may not", what)
	case leaving && !r.scenario.removes:
		w.say(r, "%s goes away", what)
	case leaving:
	case len(o.GetOwnerReferences()) == 0:
		w.say(r, "%s has no owner", what)
	case packages != 1 && !r.scenario.removes: // The API server takes away references to a package that is gone.
		w.say(r, "%s has %d references to its package: %v", what, packages, o.GetOwnerReferences())
	case controllers > 1:
		w.say(r, "%s has %d controllers", what, controllers)
	}
}

func (w *witness) revision(r *round, e apiwatch.EventType, rev v1.PackageRevision) {
	active := slices.DeleteFunc(w.active[r.name], func(n string) bool { return n == rev.GetName() })
	if e == apiwatch.Deleted || rev.GetDeletionTimestamp() != nil {
		if !r.scenario.removes && !r.scenario.collects {
			w.say(r, "revision %s goes away", rev.GetName())
		}
	} else if rev.RevisionSpec().DesiredState == v1.RevisionActive {
		active = append(active, rev.GetName())
	}
	w.active[r.name] = active
	if len(active) > 1 && !r.scenario.bothActive {
		w.say(r, "%d revisions are active at once", len(active))
	}
}
