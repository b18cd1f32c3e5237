package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// witness watches every change that the API server makes, and writes down what
// must not be at any time, whatever happens to the package manager:
//
//   - an object without its package among its owners, or with two controllers,
//   - an object or a revision that goes away while its package stays,
//   - two active revisions of a package,
//   - an object of a version that is refused.
type witness struct {
	mu     sync.Mutex
	rounds map[string]*round
	// active are the active revisions of each round.
	active map[string][]string
	seen   []string
}

// watchAll starts a witness that ends with the test.
func watchAll(t testing.TB, c client.WithWatch) *witness {
	t.Helper()
	w := &witness{rounds: map[string]*round{}, active: map[string][]string{}}
	for kind, apiVersion := range apiVersions {
		list := &metav1.PartialObjectMetadataList{}
		list.APIVersion, list.Kind = apiVersion, kind+"List"
		w.watch(t, c, list, w.object)
	}
	for _, kind := range []string{v1.ProviderKind, v1.ConfigurationKind} {
		w.watch(t, c, v1.NewPackage(kind).NewRevisionList(), w.revision)
	}
	return w
}

func (w *witness) watch(t testing.TB, c client.WithWatch, list client.ObjectList, see func(*round, apiwatch.EventType, client.Object)) {
	t.Helper()
	events, err := c.Watch(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			w.note(e, see)
		}
	}()
	t.Cleanup(func() {
		events.Stop()
		<-done
	})
}

func (w *witness) note(e apiwatch.Event, see func(*round, apiwatch.EventType, client.Object)) {
	o, ok := e.Object.(client.Object)
	if !ok || e.Type == apiwatch.Bookmark {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.rounds[tokens.FindString(o.GetName())]; r != nil {
		see(r, e.Type, o)
	}
}

// expect makes the witness look at a round.
func (w *witness) expect(r *round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds[r.name] = r
}

// forget ends that, before the package of a round is taken away.
func (w *witness) forget(r *round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rounds, r.name)
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

func (w *witness) revision(r *round, e apiwatch.EventType, o client.Object) {
	rev := o.(v1.PackageRevision)
	active := slices.DeleteFunc(w.active[r.name], func(n string) bool { return n == rev.GetName() })
	if e == apiwatch.Deleted || rev.GetDeletionTimestamp() != nil {
		if !r.scenario.removes {
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
