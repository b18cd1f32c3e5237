// Package runtimes holds the runtimes that a manager uses, and stops the runtimes of revisions.
package runtimes

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Set holds the runtimes that a manager uses.
type Set struct {
	Choice runtime.Choice
	// ByName has an entry for each runtime that the choice uses, except for None.
	ByName map[runtime.Name]runtime.Runtime
	// Changes receives the names of revisions whose processes have changed. It is nil without
	// processes.
	Changes <-chan string
	// Events has a channel for each kind of package with a runtime; see [Set.RelayChanges].
	Events map[string]chan event.GenericEvent
	// locks serializes changes of the runtimes of a package.
	locks keyedmutex.Mutex[reservations.Key]
}

// HasRuntime reports whether packages of a kind have a runtime.
func HasRuntime(kind string) bool { return v1.NewPackage(kind).RuntimeSpec() != nil }

// Of returns the runtime of a package, or nil if the manager runs none.
func (s *Set) Of(kind, name string) runtime.Runtime { return s.ByName[s.Choice.Of(kind, name)] }

// Used returns the names of the runtimes in use, in a fixed order.
func (s *Set) Used() []runtime.Name {
	var out []runtime.Name
	for _, name := range runtime.Names() {
		if s.ByName[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// Lock locks the runtimes of a package against concurrent changes, and returns the function that
// unlocks them. It fails if the context ends first.
func (s *Set) Lock(ctx context.Context, key reservations.Key) (unlock func(), err error) {
	return s.locks.Lock(ctx, key)
}

// RelayChanges sends an event to all channels in Events for each change of a process, until the
// context ends or Changes is closed.
func (s *Set) RelayChanges(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case name, ok := <-s.Changes:
			if !ok {
				return nil
			}
			for _, to := range s.Events {
				select {
				case to <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
				case <-ctx.Done():
					return nil
				}
			}
		}
	}
}

// StopRevision stops the runtime of a revision that does not exist any more.
func (s *Set) StopRevision(ctx context.Context, kind, name string) error {
	if !HasRuntime(kind) {
		return nil
	}
	owner := plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: v1.RevisionKind(kind), Name: name}
	var all []error
	for _, used := range s.Used() {
		_, err := s.ByName[used].Stop(ctx, owner)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// StopPackage stops all runtimes of a package that does not exist any more. Revisions that still
// exist do not start the runtimes again, because their reconciliation reads the package first.
func (s *Set) StopPackage(ctx context.Context, key reservations.Key) error {
	if !HasRuntime(key.Kind) {
		return nil
	}
	unlock, err := s.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	requester := plan.Requester{Package: plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: key.Kind, Name: key.Name}}
	var all []error
	for _, used := range s.Used() {
		_, err := StopOthers(ctx, s.ByName[used], requester)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// StopOthers stops the runtimes of all revisions of the requester's package but the requester. It
// returns the name of the first revision whose runtime has not stopped completely.
func StopOthers(ctx context.Context, by runtime.Runtime, requester plan.Requester) (remaining string, err error) {
	others, err := by.Others(ctx, requester)
	if err != nil {
		return "", err
	}
	return StopAll(ctx, by, others)
}

// StopAll stops the runtimes of revisions. It returns the name of the first one whose runtime has
// not stopped completely.
func StopAll(ctx context.Context, by runtime.Runtime, revisions []plan.Owner) (remaining string, err error) {
	var all []error
	for _, o := range revisions {
		gone, err := by.Stop(ctx, o)
		all = append(all, err)
		if !gone && remaining == "" {
			remaining = o.Name
		}
	}
	return remaining, errors.Join(all...)
}
