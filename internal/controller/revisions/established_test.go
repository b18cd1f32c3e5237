package revisions

import (
	"testing"
	"time"
)

func TestStallIsDetectedOnceForEachTimeout(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steps := []struct {
		after   time.Duration
		missing int
		want    bool
	}{
		{0, 9, false},
		{stallTimeout - 1, 9, false},
		{stallTimeout, 8, false},
		{2*stallTimeout - 1, 8, false},
		{2 * stallTimeout, 8, true},
		{2*stallTimeout + 1, 8, false},
		{3 * stallTimeout, 8, true},
		{4 * stallTimeout, 7, false},
	}
	var s stallDetector
	for _, step := range steps {
		if got := s.isStalled(step.missing, begin.Add(step.after)); got != step.want {
			t.Errorf("%d missing after %s: got %t", step.missing, step.after, got)
		}
	}
}

func TestPollIntervalFollowsTheRateOfTheAPIServer(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steps := []struct {
		after   time.Duration
		missing int
		want    time.Duration
	}{
		{0, 500, establishedPoll},
		{50 * time.Millisecond, 500, establishedPoll},
		{250 * time.Millisecond, 500, 250 * time.Millisecond},
		{500 * time.Millisecond, 490, 500 * time.Millisecond}, // 20 in a second: 12 s for half
		{20 * time.Second, 100, maxEstablishedPoll},           // still 20 in a second
		{22 * time.Second, 60, 1500 * time.Millisecond},
		{24 * time.Second, 20, 500 * time.Millisecond},
		{24500 * time.Millisecond, 10, 250 * time.Millisecond},
		{24900 * time.Millisecond, 1, establishedPoll},
		{24950 * time.Millisecond, 600, maxEstablishedPoll}, // more than at first: some were removed
	}
	var p pollInterval
	for _, step := range steps {
		if got := p.next(step.missing, begin.Add(step.after)); got != step.want {
			t.Errorf("%d missing after %s: got %s, want %s", step.missing, step.after, got, step.want)
		}
	}
}
