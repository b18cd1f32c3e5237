package contention

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// maxObjects bounds the memory of a brake, a few hundred bytes for each object.
const maxObjects = 1 << 14

// Brake applies limits to the writes of a controller. It keeps its state in memory, and is safe for concurrent use.
//
// A write counts if another client has changed or deleted the object since the last write, or if
// the brake does not know the last write. The writes of each desired state are counted separately,
// so the first write of a new desired state is never stopped.
type Brake struct {
	Limits Limits
	Now    func() time.Time
	// LastChange returns the last change of an object by another client. It may be nil.
	LastChange func(ctx context.Context, ref plan.Ref, subresource string) Change
	// Report is called each time that the writes of an object stop. It may be nil.
	Report func(ctx context.Context, s Stop)

	mu      sync.Mutex
	objects map[plan.Ref]*record
	sweepAt time.Time
}

// record holds the writes of one object.
type record struct {
	// version is the resourceVersion after the last write. After a deletion, it is the one of the deleted object.
	version string
	// deleted reports that the last write was a deletion.
	deleted bool
	// open is the number of writes that have begun and not ended: a read may already show their result.
	open  int
	parts map[string]*part // by subresource
	used  time.Time
}

// part holds the writes of an object, or of its status.
type part struct {
	// disturbed reports whether another client has written the object since the last write of the part.
	disturbed bool
	states    map[string]*written
}

const (
	// maxStates is the number of desired states of an object that are counted. Two controllers that disagree make the
	// manager alternate between a few.
	maxStates = 8
	// statusFactor multiplies the limit for a status. A status reports facts that change without a
	// write, such as the health of a runtime.
	statusFactor = 4
)

// state returns the history of a desired state.
func (p *part) state(desired string) *written {
	s := p.states[desired]
	if s == nil {
		if len(p.states) >= maxStates {
			clear(p.states)
		}
		s = &written{}
		p.states[desired] = s
	}
	return s
}

// written holds the writes of one desired state.
type written struct {
	history History
	// stop is the error of all attempts until the next write. The error stays the same, so that
	// conditions do not change.
	stop error
}

// Begin decides about a write. It fails with ErrContended if the object is not written now; otherwise end must be
// called with the resourceVersion that the write returned, or with its error. It implements [apply.Brake].
func (b *Brake) Begin(ctx context.Context, a apply.Attempt) (end func(resourceVersion string, err error), err error) {
	isDeletion := a.Desired == apply.Deleted
	a.Desired = causeOf(ctx) + a.Desired
	counted, d, stop := b.decide(a, isDeletion)
	if stop != nil {
		return nil, stop
	}
	if !d.Write {
		return nil, b.stop(ctx, a, d)
	}
	return func(resourceVersion string, err error) { b.end(a, counted, resourceVersion, err) }, nil
}

// decide returns the decision about a write and whether it counts, or the error of a former decision that still holds.
func (b *Brake) decide(a apply.Attempt, isDeletion bool) (counted bool, d Decision, stop error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.Now()
	r := b.recordOf(a.Ref, now)
	p := r.part(a.Subresource)
	w := p.state(a.Desired)
	if r.open == 0 && r.isChanged(a, isDeletion) {
		for _, p := range r.parts {
			p.disturbed = true
		}
	}
	if !p.disturbed {
		r.open++
		return false, Decision{Write: true}, nil
	}
	wasRefused := w.history.refused
	limits := b.Limits
	if a.Subresource != "" {
		limits.Writes *= statusFactor
	}
	w.history, d = limits.Decide(w.history, now)
	if d.Write {
		r.open++
		w.stop = nil
	} else if wasRefused {
		stop = w.stop
	}
	return true, d, stop
}

// isChanged reports whether the resourceVersion that a write is based on shows a write by another client after the last
// write of the manager. After a deletion, a stale read shows the deleted object. The API server writes the status of
// each new CRD, which is no reason to count its deletion.
func (r *record) isChanged(a apply.Attempt, isDeletion bool) bool {
	if r.deleted && a.Base == "" || !r.deleted && isDeletion && a.Ref.Kind == plan.DefinitionKind {
		return false
	}
	return isNewer(a.Base, r.version)
}

// isNewer reports whether base, the resourceVersion that a write is based on, shows a write by
// another client after last, the resourceVersion of the manager's last write. An older base comes
// from a stale read, for which the API server rejects the write. An empty resourceVersion stands
// for an object that does not exist.
func isNewer(base, last string) bool {
	if base == last {
		return false
	}
	is, err := strconv.ParseUint(base, 10, 64)
	was, errLast := strconv.ParseUint(last, 10, 64)
	return err != nil || errLast != nil || is > was
}

// stop records and reports that an object is not written any more. It returns the error of the
// write.
func (b *Brake) stop(ctx context.Context, a apply.Attempt, d Decision) error {
	s := Stop{Ref: a.Ref, Decision: d}
	if b.LastChange != nil {
		s.Last = b.LastChange(ctx, a.Ref, a.Subresource)
	}
	err := s.failure()
	b.mu.Lock()
	b.recordOf(a.Ref, b.Now()).part(a.Subresource).state(a.Desired).stop = err
	b.mu.Unlock()
	if b.Report != nil {
		b.Report(ctx, s)
	}
	return err
}

// end records the result of a write. A failed one does not count.
func (b *Brake) end(a apply.Attempt, counted bool, resourceVersion string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recordOf(a.Ref, b.Now())
	r.open = max(0, r.open-1) // It is 0 if the record was evicted.
	p := r.part(a.Subresource)
	if err == nil {
		isDeletion := resourceVersion == ""
		if isDeletion {
			resourceVersion = a.Base
		}
		if isNewer(resourceVersion, r.version) || isDeletion { // Concurrent writes end in any order.
			r.version, r.deleted = resourceVersion, isDeletion
		}
		p.disturbed = false
		return
	}
	if counted {
		w := p.state(a.Desired)
		w.history = w.history.withoutLast()
	}
}

// recordOf returns the record of an object. It creates a missing record, and may evict others.
func (b *Brake) recordOf(ref plan.Ref, now time.Time) *record {
	r := b.objects[ref]
	if r == nil {
		b.evict(now)
		r = &record{parts: map[string]*part{}}
		b.objects[ref] = r
	}
	r.used = now
	return r
}

// part returns the writes of an object, or of its status if subresource is "status".
func (r *record) part(subresource string) *part {
	p := r.parts[subresource]
	if p == nil {
		// It is unknown whether another client has written the part before.
		p = &part{disturbed: true, states: map[string]*written{}}
		r.parts[subresource] = p
	}
	return p
}

// evict removes the records that were not used for two windows, and the least recently used quarter
// if there are still too many.
func (b *Brake) evict(now time.Time) {
	if b.objects == nil {
		b.objects = map[plan.Ref]*record{}
	}
	full := len(b.objects) >= maxObjects
	if !full && now.Before(b.sweepAt) {
		return
	}
	b.sweepAt = now.Add(b.Limits.Window)
	for ref, r := range b.objects {
		if now.Sub(r.used) >= 2*b.Limits.Window {
			delete(b.objects, ref)
		}
	}
	if len(b.objects) < maxObjects {
		return
	}
	type aged struct {
		ref  plan.Ref
		used time.Time
	}
	var all []aged
	for ref, r := range b.objects {
		all = append(all, aged{ref, r.used})
	}
	slices.SortFunc(all, func(x, y aged) int { return cmp.Or(x.used.Compare(y.used), x.ref.Compare(y.ref)) })
	for _, o := range all[:maxObjects/4] {
		delete(b.objects, o.ref)
	}
}

type causeKey struct{}

// WithCause returns a context whose writes have a cause, such as the generation of a package.
// Writes with different causes count as different desired states.
func WithCause(ctx context.Context, cause string) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

func causeOf(ctx context.Context) string {
	cause, _ := ctx.Value(causeKey{}).(string)
	return cause + "\n"
}
