package terminal

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// The calls of a task are counted, and the first failure is that of the task.
func TestTaskCountsItsCalls(t *testing.T) {
	failure := errors.New("broken")
	for _, want := range []error{nil, failure} {
		var out strings.Builder
		task := &Task{Progress: NewProgress(&out), What: "reading 25 packages"}
		task.late.Store(true)
		err := task.Each(t.Context(), 25, 1, func(_ context.Context, i int) error {
			if i == 24 {
				return want
			}
			return nil
		})
		if !errors.Is(err, want) || !strings.Contains(out.String(), "reading 25 packages: 23 of 25\n") {
			t.Errorf("%v, and the progress is\n%s", err, out.String())
		}
	}
}
