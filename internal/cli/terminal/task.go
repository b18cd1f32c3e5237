package terminal

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Task is an operation that may take long. Its progress is reported on a terminal from the start, and elsewhere after
// a second.
type Task struct {
	*Progress
	What  string
	timer *time.Timer
	late  atomic.Bool  // the task takes longer than a second
	tenth atomic.Int64 // last reported tenth
}

// StartTask starts to report a task.
func StartTask(w io.Writer, what string, args ...any) *Task {
	t := &Task{Progress: NewProgress(w), What: fmt.Sprintf(what, args...)}
	if t.Tty {
		t.Set("%s", t.What)
		return t
	}
	t.timer = time.AfterFunc(time.Second, func() {
		t.late.Store(true)
		t.Set("%s", t.What)
	})
	return t
}

// Step reports the number of completed parts of the task. On a terminal, it updates the line; elsewhere it
// writes a line for each tenth of the task.
func (t *Task) Step(done, total int, details string) {
	if !t.Tty {
		tenth := int64(done * 10 / total)
		if !t.late.Load() || t.tenth.Swap(tenth) >= tenth {
			return
		}
	}
	t.Set("%s: %d of %d%s", t.What, done, total, details)
}

// Each calls a function with the indexes below count, at most limit at the same time, and reports how many calls have
// returned. It returns the first error, which ends the context of the others.
func (t *Task) Each(ctx context.Context, count, limit int, call func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	var done atomic.Int64
	for i := range count {
		group.Go(func() error {
			err := call(ctx, i)
			if n := int(done.Add(1)); err == nil {
				t.Step(n, count, "")
			}
			return err
		})
	}
	return group.Wait()
}

// End ends the task. It can be called repeatedly.
func (t *Task) End() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.Progress.End()
}

// Unchanged writes above the progress line that a registry has the content of a reference already.
func (t *Task) Unchanged(ref oci.Reference) {
	fmt.Fprintf(t, "%s is already there\n", Safe(ref.String()))
}

// Warn writes a warning of a registry above the progress line.
func (t *Task) Warn(registry, message string) {
	fmt.Fprintf(t, "warning from registry %s: %s\n", Safe(registry), Safe(message))
}
