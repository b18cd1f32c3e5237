package inventory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// watchRetry is the time between a failed watch and the next one.
const watchRetry = time.Second

// Event is a package that was read, changed or deleted.
type Event struct {
	Package v1.Package
	Deleted bool
}

// Watch watches the packages of a kind.
type Watch struct {
	Cluster  client.WithWatch
	Kind     string
	Selector labels.Selector

	// known are the packages that exist, and version the version of the list after which changes are watched.
	known   map[string]v1.Package
	version string
}

// List reads the packages, and returns them with the known ones that do not exist any more.
func (w *Watch) List(ctx context.Context) ([]Event, error) {
	list := v1.NewPackageList(w.Kind)
	if err := w.Cluster.List(ctx, list, client.MatchingLabelsSelector{Selector: w.Selector}); err != nil {
		return nil, err
	}
	w.version = list.GetResourceVersion()
	var out []Event
	if w.known == nil {
		w.known = map[string]v1.Package{}
	}
	former := maps.Clone(w.known)
	for _, p := range list.Packages() {
		delete(former, p.GetName())
		out = append(out, w.note(p, false))
	}
	for _, name := range slices.Sorted(maps.Keys(former)) {
		out = append(out, w.note(former[name], true))
	}
	return out, nil
}

// note records a package as existing or deleted, and returns the event.
func (w *Watch) note(p v1.Package, deleted bool) Event {
	p.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(w.Kind))
	w.known[p.GetName()] = p
	if deleted {
		delete(w.known, p.GetName())
	}
	return Event{p, deleted}
}

// Run sends the changes of packages since List until ctx ends. It lists the packages again when the API server ends the watch.
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
	changes, err := w.Cluster.Watch(ctx, v1.NewPackageList(w.Kind), &client.ListOptions{LabelSelector: w.Selector, Raw: &metav1.ListOptions{ResourceVersion: w.version}})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		p, ok := e.Object.(v1.Package)
		if !ok {
			return errWatchEnded // An error, such as a version that is too old.
		}
		if err := send(ctx, events, w.note(p, e.Type == apiwatch.Deleted)); err != nil {
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
