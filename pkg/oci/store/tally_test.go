package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// All processes share the tally, until it is too old or damaged.
func TestTheTallyIsSharedForASecond(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "store"), time.Unix(1000, 0)
	open := func() *Store {
		s, err := Open(dir, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s, other := open(), open()
	if got, ok := s.Tally(); ok {
		t.Errorf("a new store has the tally %v", got)
	}
	for _, bytes := range []int64{1 << 40, 7} {
		s.SetTally(Tally{bytes, now})
		if got, ok := other.Tally(); !ok || got.Bytes != bytes || !got.Measured.Equal(now) {
			t.Errorf("another process has the tally %v, %v, want %d", got, ok, bytes)
		}
	}
	for _, step := range []time.Duration{tallyAge + 1, -time.Hour} {
		now = now.Add(step)
		if got, ok := s.Tally(); ok {
			t.Errorf("%s later, the tally is %v", step, got)
		}
	}
	now = time.Unix(1000, 0)
	for _, damaged := range []string{"", "7", "seven 1", "-7 1000000000000\n"} {
		if err := os.WriteFile(filepath.Join(dir, changesFile), []byte(damaged), fileMode); err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Tally(); ok {
			t.Errorf("%q is the tally %v", damaged, got)
		}
	}
}
