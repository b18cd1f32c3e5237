package packageapi

import (
	"cmp"
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrOverwritten is the code for packages whose CRD another program keeps overwriting.
var ErrOverwritten = errcode.Code{
	Name: "PackageAPIOverwritten", Class: errcode.Conflict,
	Cause: "Another program keeps overwriting a CRD of the package API, so that the API server drops fields of packages.",
	Fix:   "Stop the program that writes the CRD under the field manager in the message.",
}

// overwritten returns the error for packages whose CRD another program keeps overwriting.
func overwritten(crd string, s contention.Stop) error {
	return ErrOverwritten.New(s, "another program keeps overwriting CustomResourceDefinition %s", crd).
		WithDo("Stop the program that writes it; a Crossplane in the same cluster with `kubectl scale deployment/crossplane --namespace crossplane-system --replicas 0`. "+
			"`kubectl get crd %s -o yaml --show-managed-fields` shows the writer.", crd)
}

// Overwritten holds the kinds of packages whose CRDs another program keeps overwriting. It is safe
// for concurrent use.
type Overwritten struct {
	mu       sync.Mutex
	failures map[string]error // by the kind that the CRD defines
	watchers []chan<- event.GenericEvent
}

// Of returns an error if a program keeps overwriting the CRD of a kind of package, or of its
// revisions.
func (o *Overwritten) Of(kind string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return cmp.Or(o.failures[kind], o.failures[v1.RevisionKind(kind)])
}

// Changes returns a channel that gets an event whenever the result of Of may have changed. It must be called before the
// controllers start, and the events must be received.
func (o *Overwritten) Changes() <-chan event.GenericEvent {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := make(chan event.GenericEvent)
	o.watchers = append(o.watchers, c)
	return c
}

// set records the error for the CRD of a kind, and notifies the watchers. A nil error clears it.
func (o *Overwritten) set(ctx context.Context, kind string, failure error) {
	o.mu.Lock()
	was := o.failures[kind]
	if o.failures == nil {
		o.failures = map[string]error{}
	}
	o.failures[kind] = failure
	watchers := o.watchers
	o.mu.Unlock()
	if was == nil && failure == nil {
		return
	}
	for _, c := range watchers {
		select {
		case c <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: kind}}}:
		case <-ctx.Done():
			return
		}
	}
}
