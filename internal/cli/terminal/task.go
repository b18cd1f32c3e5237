package terminal

import (
	"fmt"
	"io"
	"time"
)

// Task is an operation that may take long. Its progress is reported on a terminal from the start, and elsewhere after
// a second.
type Task struct {
	*Progress
	What  string
	timer *time.Timer
}

// StartTask starts to report a task.
func StartTask(w io.Writer, what string, args ...any) *Task {
	t := &Task{Progress: NewProgress(w), What: fmt.Sprintf(what, args...)}
	if t.Tty {
		t.Set("%s", t.What)
		return t
	}
	t.timer = time.AfterFunc(time.Second, func() { t.Set("%s", t.What) })
	return t
}

// End ends it; once more does no harm.
func (t *Task) End() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.Progress.End()
}

// Warn writes a warning of a registry above the progress.
func (t *Task) Warn(registry, message string) {
	fmt.Fprintf(t, "warning from registry %s: %s\n", Safe(registry), Safe(message))
}
