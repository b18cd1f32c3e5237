package lock

import (
	"testing"
	"time"
)

// Writes that follow each other use a fifth of the time, and a slow one delays the next by at most a second.
func TestWritesUseAFifthOfTheTime(t *testing.T) {
	began := time.Unix(1000, 0)
	for took, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 40 * time.Millisecond, 200 * time.Millisecond: 800 * time.Millisecond,
		time.Minute: time.Second,
	} {
		var p pace
		if !p.next.Before(began) {
			t.Error("the first write has to wait")
		}
		p.wrote(began, began.Add(took))
		if got := p.next.Sub(began.Add(took)); got != want {
			t.Errorf("after a write of %s, the pause is %s, want %s", took, got, want)
		}
	}
}
