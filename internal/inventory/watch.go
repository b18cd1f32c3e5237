package inventory

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
)

// watchRetry is the time between a failed watch and the next one.
const watchRetry = time.Second

// Event is an object that was read, changed or deleted.
type Event struct {
	Object  Object
	Deleted bool
	// Unselected reports whether the object exists and has lost the selected labels.
	Unselected bool
}

// IsGone reports whether the object is not among the selected ones any more.
func (e Event) IsGone() bool { return e.Deleted || e.Unselected }

// Watch watches the objects of a kind: packages, or objects of an API. It ignores objects that only record others.
type Watch struct {
	Cluster  client.WithWatch
	Frontend *frontend.API
	Kind     schema.GroupVersionKind
	Selector labels.Selector
	// Namespace restricts the objects to a namespace, unless it is empty.
	Namespace string

	// known are the selected objects, and version the version of the list after which changes are watched.
	known   map[client.ObjectKey]Object
	version string
}

// WatchedKinds returns the kinds of packages, and those of an API.
func WatchedKinds(api *frontend.API) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, kind := range v1.PackageKinds() {
		out = append(out, v1.GroupVersion.WithKind(kind))
	}
	return append(out, api.GroupVersionKinds()...)
}

// newList returns an empty list of the kind.
func (w *Watch) newList() (client.ObjectList, error) {
	list, err := w.Cluster.Scheme().New(w.Kind.GroupVersion().WithKind(w.Kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}

// List reads the objects, and returns them with the known ones that are not selected any more.
func (w *Watch) List(ctx context.Context) ([]Event, error) {
	list, err := w.newList()
	if err != nil {
		return nil, err
	}
	if err := w.Cluster.List(
		ctx, list, client.MatchingLabelsSelector{Selector: w.Selector}, client.InNamespace(w.Namespace),
	); err != nil {
		return nil, err
	}
	w.version = list.GetResourceVersion()
	if w.known == nil {
		w.known = map[client.ObjectKey]Object{}
	}
	var out []Event
	former := maps.Clone(w.known)
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := w.watched(item); ok {
			delete(former, client.ObjectKeyFromObject(o))
			out = append(out, w.note(o))
		}
		return nil
	})
	gone := slices.SortedFunc(
		maps.Values(former), func(a, b Object) int { return cmp.Compare(ShortName(a), ShortName(b)) },
	)
	for _, o := range gone {
		out = append(out, w.remove(ctx, o))
	}
	return out, err
}

// watched returns an object of a list or of a watch, and false for a record or for the status of a watch.
func (w *Watch) watched(item runtime.Object) (Object, bool) {
	o, ok := item.(Object)
	if !ok || w.Kind.Group == v1.Group {
		return o, ok
	}
	of := w.Frontend.Of(o)
	return of, !of.IsRecord
}

// note records a selected object, and returns the event.
func (w *Watch) note(o Object) Event {
	o.GetObjectKind().SetGroupVersionKind(w.Kind)
	w.known[client.ObjectKeyFromObject(o)] = o
	return Event{Object: o}
}

// remove forgets an object that is not selected any more, and returns the event. The API server reports an object that
// has lost the selected labels as deleted, so the object is read.
func (w *Watch) remove(ctx context.Context, o Object) Event {
	o.GetObjectKind().SetGroupVersionKind(w.Kind)
	delete(w.known, client.ObjectKeyFromObject(o))
	live := o.DeepCopyObject().(Object)
	if w.Selector.Empty() || w.Cluster.Get(ctx, client.ObjectKeyFromObject(o), live) != nil ||
		live.GetUID() != o.GetUID() {
		return Event{Object: o, Deleted: true}
	}
	live.GetObjectKind().SetGroupVersionKind(w.Kind)
	live, _ = w.watched(live)
	return Event{Object: live, Unselected: true}
}

// Run sends the changes of objects since List until ctx ends. It lists the objects again when the API server ends the
// watch.
func (w *Watch) Run(ctx context.Context, events chan<- Event) error {
	for {
		err := w.follow(ctx, events)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			select {
			case <-time.After(watchRetry):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		all, err := w.List(ctx)
		if err != nil {
			continue // The watch fails as well, and is repeated after a wait.
		}
		for _, e := range all {
			if err := send(ctx, events, e); err != nil {
				return err
			}
		}
	}
}

// errWatchEnded is the end of a watch by the API server.
var errWatchEnded = errors.New("the watch ended")

// follow sends the changes since the last list, until the watch ends.
func (w *Watch) follow(ctx context.Context, events chan<- Event) error {
	list, err := w.newList()
	if err != nil {
		return err
	}
	changes, err := w.Cluster.Watch(ctx, list, &client.ListOptions{
		LabelSelector: w.Selector, Namespace: w.Namespace, Raw: &metav1.ListOptions{ResourceVersion: w.version},
	})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		if e.Type == apiwatch.Error {
			return errWatchEnded // Such as a version that is too old.
		}
		o, ok := w.watched(e.Object)
		if !ok {
			continue
		}
		var event Event
		if e.Type == apiwatch.Deleted {
			event = w.remove(ctx, o)
		} else {
			event = w.note(o)
		}
		if err := send(ctx, events, event); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, events chan<- Event, e Event) error {
	select {
	case events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
