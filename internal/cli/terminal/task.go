package terminal

import (
	"fmt"
	"io"
	"time"
)

// Task is one thing that a command does, and that may take long. It is told on a
// terminal from the start, and elsewhere when it takes over a second.
type Task struct {
	*Progress
	What  string
	timer *time.Timer
}

// StartTask starts to tell of a task.
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
	fmt.Fprintf(t, "warning from registry %s: %s\n", registry, message)
}
