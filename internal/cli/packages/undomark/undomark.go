// Package undomark marks the packages that a command writes and may undo, with [revision.AnnotationUndo], and finds the changes that other
// clients make meanwhile.
//
// A command that may undo its changes writes packages with the client of [New]. Another command that leaves such a package as it is removes
// the mark with [Remove], and every other write of xpkg replaces it; other clients are found by their managed fields. Before the command
// undoes a change, [State.Matches] reports whether the package is still as it has written it. When the command ends, [State.Release] removes
// its mark.
package undomark

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// marking creates and updates packages with the mark of a command.
type marking struct {
	client.Client
	mark string
}

// New returns a client that marks the packages that it creates and updates if the command may undo its changes, and that removes the marks of
// other commands from them otherwise.
func New(cluster client.Client, mayUndo bool) client.Client {
	c := marking{Client: cluster}
	if mayUndo {
		c.mark = rand.Text()
	}
	return c
}

// Create implements client.Writer.
func (c marking) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, o, func(ctx context.Context) error { return c.Client.Create(ctx, o, opts...) })
}

// Update implements client.Writer.
func (c marking) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, o, func(ctx context.Context) error { return c.Client.Update(ctx, o, opts...) })
}

const (
	// readTime bounds the time for the read of a package after a failed write.
	readTime = 5 * time.Second
	// endTime is the time in which a write ends after the user has interrupted the command.
	endTime = 5 * time.Second
)

// write marks a package and writes it. A failed write succeeds if the package has the mark: the connection ended before the response, or the
// request was sent again. An interrupt does not end a write that may have arrived, so that the command knows whether it has to undo it.
func (c marking) write(ctx context.Context, o client.Object, write func(context.Context) error) error {
	p, ok := o.(v1.Package)
	if !ok {
		return write(ctx)
	}
	revision.SetUndo(p, c.mark)
	if c.mark == "" || ctx.Err() != nil {
		return write(ctx)
	}
	complete, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(endTime, end) })()
	err := write(complete)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	live := v1.NewPackage(p.PackageKind())
	if c.Get(ctx, client.ObjectKeyFromObject(p), live) != nil || markOf(live) != c.mark {
		return err
	}
	reflect.ValueOf(p).Elem().Set(reflect.ValueOf(live).Elem())
	return nil
}

// markOf returns the mark of a package; empty if it has none.
func markOf(p v1.Package) string { return p.GetAnnotations()[revision.AnnotationUndo] }

// Remove removes the mark of any command from a package, which then does not undo its change. It fails with PlanMoved if the package has been
// changed or deleted since it was read.
func Remove(ctx context.Context, cluster client.Client, p v1.Package) error {
	uid, generation := p.GetUID(), p.GetGeneration()
	return remove(ctx, cluster, p, func() (bool, error) {
		if p.GetUID() != uid || p.GetGeneration() != generation {
			return false, moved(p)
		}
		return revision.IsUndoable(p), nil
	})
}

// moved returns the error of a package that has been changed or deleted since it was read.
func moved(p v1.Package) error {
	return planner.ErrPlanMoved.New(nil, "another command has undone or changed the installation of %s meanwhile", inventory.ShortName(p)).
		WithDo("Run the command again.")
}

// remove removes the mark of a package if isMarked reports that it is one to remove.
func remove(ctx context.Context, cluster client.Client, p v1.Package, isMarked func() (bool, error)) error {
	err := inventory.PatchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if marked, err := isMarked(); err != nil || !marked {
			return nil, err
		}
		return map[string]any{"annotations": map[string]any{revision.AnnotationUndo: nil}}, nil
	})
	if apierrors.IsNotFound(err) {
		return moved(p)
	}
	return err
}

// State is the state of a package when a command has written it.
type State struct {
	uid types.UID
	// generation is incremented by a client that changes the spec.
	generation int64
	mark       string
	// isDependency reports whether the package was marked as installed for its dependents.
	isDependency bool
	// labels and annotations are those that the command has written.
	labels, annotations map[string]string
	// writers are the records of the clients that have written the package, other than its status.
	writers []metav1.ManagedFieldsEntry
}

// StateOf returns the state of a package that a command has just written.
func StateOf(p v1.Package) State {
	return State{
		uid: p.GetUID(), generation: p.GetGeneration(), mark: markOf(p), isDependency: graph.IsAutoInstalled(p),
		labels: maps.Clone(p.GetLabels()), annotations: maps.Clone(p.GetAnnotations()), writers: p.GetManagedFields(),
	}
}

// RestoreLabels sets the labels of a package that the command has changed to their values before. It leaves those that another client has
// changed since, which can also be a removal.
func (s State) RestoreLabels(live, before v1.Package, keys ...string) {
	live.SetLabels(restored(live.GetLabels(), s.labels, before.GetLabels(), keys))
}

// RestoreAnnotations is like RestoreLabels for annotations.
func (s State) RestoreAnnotations(live, before v1.Package, keys ...string) {
	live.SetAnnotations(restored(live.GetAnnotations(), s.annotations, before.GetAnnotations(), keys))
}

// restored returns a map with the former values of the keys whose values are still as they were written.
func restored(live, written, former map[string]string, keys []string) map[string]string {
	out := maps.Clone(live)
	for _, key := range keys {
		is, exists := live[key]
		was, existed := written[key]
		if is != was || exists != existed {
			continue
		}
		if value, ok := former[key]; !ok {
			delete(out, key)
		} else if out == nil {
			out = map[string]string{key: value}
		} else {
			out[key] = value
		}
	}
	return out
}

// AsDependency returns the state after the command has marked the package as a dependency.
func (s State) AsDependency() State {
	s.isDependency = true
	return s
}

// Matches reports whether a package is still in the state: no client has replaced or changed it, applied it without a change, or installed
// explicitly what was a dependency.
func (s State) Matches(p v1.Package) bool {
	isNew := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != plan.FieldManager && e.Subresource == "" && !slices.ContainsFunc(s.writers, func(w metav1.ManagedFieldsEntry) bool {
			// The time has a precision of a second.
			return w.Manager == e.Manager && w.Operation == e.Operation && w.Time.Equal(e.Time) && equality.Semantic.DeepEqual(w.FieldsV1, e.FieldsV1)
		})
	}
	return p.GetUID() == s.uid && p.GetGeneration() == s.generation && markOf(p) == s.mark && (!s.isDependency || graph.IsAutoInstalled(p)) &&
		!slices.ContainsFunc(p.GetManagedFields(), isNew)
}

// Release removes the mark of the state from a package, also if another client has changed the package since. It leaves the mark of another
// command, and a mark that cannot be removed: it has no effect when its command has ended.
func (s State) Release(ctx context.Context, cluster client.Client, p v1.Package) {
	if s.mark == "" {
		return
	}
	for range releases {
		err := remove(ctx, cluster, p, func() (bool, error) { return markOf(p) == s.mark, nil })
		if !errors.Is(err, apiserver.ErrCluster) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(releasePause):
		}
	}
}

const (
	// releases is the number of attempts to remove the mark of a command that ends, if the API server does not respond.
	releases     = 3
	releasePause = 200 * time.Millisecond
)
