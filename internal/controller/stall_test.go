package controller

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

func TestPace(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steps := []struct {
		after time.Duration
		left  int
		want  time.Duration
	}{
		{0, 500, establishedPoll},
		{50 * time.Millisecond, 500, establishedPoll},
		{250 * time.Millisecond, 500, 250 * time.Millisecond},
		{500 * time.Millisecond, 490, 500 * time.Millisecond}, // 20 in a second: 12 s for half
		{20 * time.Second, 100, establishedPause},             // still 20 in a second
		{22 * time.Second, 60, 1500 * time.Millisecond},
		{24 * time.Second, 20, 500 * time.Millisecond},
		{24500 * time.Millisecond, 10, 250 * time.Millisecond},
		{24900 * time.Millisecond, 1, establishedPoll},
		{24950 * time.Millisecond, 600, establishedPause}, // more than at first: some were removed
	}
	var p pace
	for _, step := range steps {
		if got := p.pause(step.left, begin.Add(step.after)); got != step.want {
			t.Errorf("%d left after %s: got %s, want %s", step.left, step.after, got, step.want)
		}
	}
}
