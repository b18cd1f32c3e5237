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
	// longestFailure is how long a failure is shared at most.
	longestFailure = 5 * time.Second
	// maxAnswers and oldestAnswer bound what is remembered.
	maxAnswers   = 4096
	oldestAnswer = time.Hour
)

// question is what a tag stands for, to somebody with these credentials.
type question struct {
	client clientKey
	ref    string
}

// answers lets those who ask the same question share the answer.
type answers struct {
	now func() time.Time

	mu  sync.Mutex
	all map[question]*answer
}

// answer is one request, under way or done.
type answer struct {
	// asked and given are the times of the request and of its end; given is zero
	// while it is under way.
	asked, given time.Time
	waiting      int
	stop         context.CancelFunc
	done         chan struct{}
	digest       oci.Digest
	err          error
}

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, all: map[question]*answer{}}
}

// get gives an answer that is not older than maxAge, or asks. The request goes on
// as long as anybody waits for it, whoever began it.
func (a *answers) get(ctx context.Context, q question, maxAge time.Duration, ask func(context.Context) (oci.Digest, error)) (oci.Digest, error) {
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

// good says whether an answer may be shared. Content is as old as the request for
// it, a failure as its end.
func (a *answer) good(now time.Time, maxAge time.Duration) bool {
	switch {
	case a.given.IsZero():
		return true
	case a.err != nil:
		return now.Sub(a.given) < min(maxAge, longestFailure)
	}
	return now.Sub(a.asked) < maxAge
}

// begin makes a request that does not end with the context of whoever asked first.
func (a *answers) begin(ctx context.Context, q question, ask func(context.Context) (oci.Digest, error)) *answer {
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

// leave is for whoever waits no longer. The last one ends the request.
func (a *answers) leave(q question, left *answer) {
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

// forget makes room for another answer.
func (a *answers) forget() {
	if len(a.all) < maxAnswers {
		return
	}
	old := func(age time.Duration) {
		now := a.now()
		maps.DeleteFunc(a.all, func(_ question, done *answer) bool { return !done.given.IsZero() && now.Sub(done.given) >= age })
	}
	old(oldestAnswer)
	if len(a.all) >= maxAnswers {
		old(0)
	}
}
