package transactions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/operation"
)

// reportInterval is the shortest interval between two writes of the progress.
const reportInterval = 2 * time.Second

// reporter writes the progress of a transaction to its status.
type reporter struct {
	// report writes a message and notes; it is called by one goroutine at a time.
	report func(message string, notes []string)

	mu    sync.Mutex
	set   bool
	last  time.Time
	notes []string
}

// report returns a function that writes the progress of a run. A failed write is not repeated: the next one contains
// more.
func (r *run) report(ctx context.Context) func(string, []string) {
	return func(message string, notes []string) {
		_ = r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) {
			if message != "" {
				setProgress(s, message)
			}
			s.Notes = notes
		})
	}
}

// setProgress sets what happens. A failure stays until the packages are returned.
func setProgress(s *v1alpha1.TransactionStatus, message string) {
	if s.Reason == "" {
		s.Message = message
	}
}

// Progress returns r.
func (r *reporter) Progress() operation.Progress { return r }

// Task reports nothing: the phase of the transaction names its tasks.
func (r *reporter) Task(string, ...any) operation.Task { return r }

// Step reports no details of tasks.
func (r *reporter) Step(int, int, string) {}

// Set writes the state of a wait, at most every two seconds.
func (r *reporter) Set(text string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = true
	if time.Since(r.last) < reportInterval {
		return
	}
	r.last = time.Now()
	r.report(fmt.Sprintf(text, args...), r.notes)
}

// IsSet reports whether there is a state.
func (r *reporter) IsSet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set
}

// End removes the state.
func (r *reporter) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = false
}

// Note adds a note.
func (r *reporter) Note(text string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(text, args...))
}

// flush writes the notes.
func (r *reporter) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notes) > 0 {
		r.report("", r.notes)
	}
}

// PlanUnavailable is not called: a transaction needs a plan.
func (r *reporter) PlanUnavailable(error) {}
