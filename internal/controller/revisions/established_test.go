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
	type step struct {
		after   time.Duration
		missing int
		want    time.Duration
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, steps := range map[string][]step{
		"one CRD": {
			{0, 1, establishedPoll},
			{50 * time.Millisecond, 1, establishedPoll},
			{400 * time.Millisecond, 1, 400 * time.Millisecond},
		},
		"500 CRDs": {
			{0, 500, 500 * fastestEstablished},
			{2500 * time.Millisecond, 500, 2500 * time.Millisecond},
			{5 * time.Second, 400, maxEstablishedPoll}, // 20 in a second: 15 s for three quarters
			{20 * time.Second, 100, 3750 * time.Millisecond},
			{23 * time.Second, 40, 1500 * time.Millisecond},
			{24 * time.Second, 10, 600 * time.Millisecond},
			{24400 * time.Millisecond, 1, 610 * time.Millisecond},
			{24950 * time.Millisecond, 900, maxEstablishedPoll}, // more than at first: some were removed
		},
	} {
		var p pollInterval
		for _, step := range steps {
			if got := p.next(step.missing, begin.Add(step.after)); got != step.want {
				t.Errorf("%s: %d missing after %s: got %s, want %s", name, step.missing, step.after, got, step.want)
			}
		}
	}
}
