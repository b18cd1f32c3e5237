package manager

import (
	"testing"
	"time"
)

func TestStall(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steps := []struct {
		after time.Duration
		left  int
		want  bool
	}{
		{0, 9, false},
		{stallLimit - 1, 9, false},
		{stallLimit, 8, false},
		{2*stallLimit - 1, 8, false},
		{2 * stallLimit, 8, true},
		{2*stallLimit + 1, 8, false},
		{3 * stallLimit, 8, true},
		{4 * stallLimit, 7, false},
	}
	var s stall
	for _, step := range steps {
		if got := s.lasts(step.left, begin.Add(step.after)); got != step.want {
			t.Errorf("%d left after %s: got %t", step.left, step.after, got)
		}
	}
}
