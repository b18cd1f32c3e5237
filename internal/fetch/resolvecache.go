package fetch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// longestFailure is the maximum time for which a failure is shared.
	longestFailure = 5 * time.Second
	// maxResolved and oldestAnswer bound the cache.
	maxResolved    = 4096
	maxResolvedAge = time.Hour
)

// resolveKey is a request to resolve a tag with given credentials.
type resolveKey struct {
	client clientKey
	ref    string
}

// resolveCache shares the result of a request among callers with the same question.
type resolveCache struct {
	now func() time.Time

	mu  sync.Mutex
	all map[resolveKey]*answer
}

// answer is a pending or completed request.
type answer struct {
	// asked and given are the times of the request and of its end; given is zero while it is pending.
	asked, given time.Time
	waiting      int
	stop         context.CancelFunc
	done         chan struct{}
	digest       oci.Digest
	err          error
}

func newAnswers(now func() time.Time) *resolveCache {
	return &resolveCache{now: now, all: map[resolveKey]*answer{}}
}

// get returns an answer that is not older than maxAge, or sends a request. The request continues while any caller
// waits for it.
func (a *resolveCache) get(
	ctx context.Context, q resolveKey, maxAge time.Duration, ask func(context.Context) (oci.Digest, error),
) (oci.Digest, error) {
	a.mu.Lock()
	current := a.all[q]
	if current == nil || !current.good(a.now(), maxAge) {
		current = a.begin(ctx, q, ask)
	}
	current.waiting++
	a.mu.Unlock()
	select {
	case <-current.done:
		return current.digest, current.err
	case <-ctx.Done():
		a.leave(q, current)
		return oci.Digest{}, fmt.Errorf("cannot resolve %s: %w", q.ref, context.Cause(ctx))
	}
}

// good reports whether an answer may be shared. A success is as old as the start of its request, an error as its
// end.
func (a *answer) good(now time.Time, maxAge time.Duration) bool {
	switch {
	case a.given.IsZero():
		return true
	case a.err != nil:
		return now.Sub(a.given) < min(maxAge, longestFailure)
	}
	return now.Sub(a.asked) < maxAge
}

// begin sends a request whose context is independent of the first caller.
func (a *resolveCache) begin(ctx context.Context, q resolveKey, ask func(context.Context) (oci.Digest, error)) *answer {
	a.forget()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	began := &answer{asked: a.now(), stop: stop, done: make(chan struct{})}
	a.all[q] = began
	go func() {
		defer stop()
		digest, err := ask(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		began.digest, began.err, began.given = digest, err, a.now()
		close(began.done)
	}()
	return began
}

// leave ends the wait of one caller. The last one cancels the request.
func (a *resolveCache) leave(q resolveKey, left *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left.waiting--
	if left.waiting > 0 || !left.given.IsZero() {
		return
	}
	left.stop()
	if a.all[q] == left {
		delete(a.all, q)
	}
}

// forget removes an answer to make room for another.
func (a *resolveCache) forget() {
	if len(a.all) < maxResolved {
		return
	}
	old := func(age time.Duration) {
		now := a.now()
		maps.DeleteFunc(
			a.all, func(_ resolveKey, done *answer) bool { return !done.given.IsZero() && now.Sub(done.given) >= age },
		)
	}
	old(maxResolvedAge)
	if len(a.all) >= maxResolved {
		old(0)
	}
}
