package operation

import (
	"context"
	"errors"
	"maps"
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

// A command that may undo its changes marks the packages that it writes with [revision.AnnotationUndo]. Another command that leaves such a
// package as it is removes the mark, and every other write of xpkg replaces it; other clients are found by their managed fields. Before the
// command undoes a change, [writtenState.matches] reports whether the package is still as it has written it. When the command ends,
// [writtenState.release] removes its mark.

// markOf returns the mark of a package; empty if it has none.
func markOf(p v1.Package) string { return p.GetAnnotations()[revision.AnnotationUndo] }

// removeMark removes the mark of any command from a package, which then does not undo its change. It fails with PlanMoved if the package has been
// changed or deleted since it was read.
func removeMark(ctx context.Context, cluster client.Client, p v1.Package) error {
	uid, generation := p.GetUID(), p.GetGeneration()
	return removeMarkIf(ctx, cluster, p, func() (bool, error) {
		if p.GetUID() != uid || p.GetGeneration() != generation {
			return false, undoneMeanwhile(p)
		}
		return revision.IsUndoable(p), nil
	})
}

// undoneMeanwhile returns the error of a package that has been changed or deleted since it was read.
func undoneMeanwhile(p v1.Package) error {
	return planner.ErrPlanMoved.New(nil, "another command has undone or changed the installation of %s meanwhile", inventory.ShortName(p)).
		WithDo("Run the command again.")
}

// removeMarkIf removes the mark of a package if isMarked reports that it is one to remove.
func removeMarkIf(ctx context.Context, cluster client.Client, p v1.Package, isMarked func() (bool, error)) error {
	err := patchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if marked, err := isMarked(); err != nil || !marked {
			return nil, err
		}
		return map[string]any{"annotations": map[string]any{revision.AnnotationUndo: nil}}, nil
	})
	if apierrors.IsNotFound(err) {
		return undoneMeanwhile(p)
	}
	return err
}

// writtenState is the state of a package when a command has written it.
type writtenState struct {
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

// stateOf returns the state of a package that a command has just written.
func stateOf(p v1.Package) writtenState {
	return writtenState{
		uid: p.GetUID(), generation: p.GetGeneration(), mark: markOf(p), isDependency: graph.IsAutoInstalled(p),
		labels: maps.Clone(p.GetLabels()), annotations: maps.Clone(p.GetAnnotations()), writers: p.GetManagedFields(),
	}
}

// restoreLabels sets the labels of a package that the command has changed to their values before. It leaves those that another client has
// changed since, which can also be a removal.
func (s writtenState) restoreLabels(live, before v1.Package, keys ...string) {
	live.SetLabels(restored(live.GetLabels(), s.labels, before.GetLabels(), keys))
}

// restoreAnnotations is like restoreLabels for annotations.
func (s writtenState) restoreAnnotations(live, before v1.Package, keys ...string) {
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

// asDependency returns the state after the command has marked the package as a dependency.
func (s writtenState) asDependency() writtenState {
	s.isDependency = true
	return s
}

// matches reports whether a package is still in the state: no client has replaced or changed it, applied it without a change, or installed
// explicitly what was a dependency.
func (s writtenState) matches(p v1.Package) bool {
	isNew := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != plan.FieldManager && e.Subresource == "" && !slices.ContainsFunc(s.writers, func(w metav1.ManagedFieldsEntry) bool {
			// The time has a precision of a second.
			return w.Manager == e.Manager && w.Operation == e.Operation && w.Time.Equal(e.Time) && equality.Semantic.DeepEqual(w.FieldsV1, e.FieldsV1)
		})
	}
	return p.GetUID() == s.uid && p.GetGeneration() == s.generation && markOf(p) == s.mark && (!s.isDependency || graph.IsAutoInstalled(p)) &&
		!slices.ContainsFunc(p.GetManagedFields(), isNew)
}

// release removes the mark of the state from a package, also if another client has changed the package since. It leaves the mark of another
// command, and a mark that cannot be removed: it has no effect when its command has ended.
func (s writtenState) release(ctx context.Context, cluster client.Client, p v1.Package) {
	if s.mark == "" {
		return
	}
	for range releases {
		err := removeMarkIf(ctx, cluster, p, func() (bool, error) { return markOf(p) == s.mark, nil })
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
