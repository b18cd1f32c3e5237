package store

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// tallyAge is the longest time for which a tally is used, because a process without a limit does not count its writes.
const tallyAge = time.Second

// A Tally is an upper bound of [Store.Bytes], which all processes share. It is kept in the file of the lock of
// [Store.Exclusive], and only valid within it.
type Tally struct {
	// Bytes is the bound: the size at the time Measured, and what was reserved since.
	Bytes    int64
	Measured time.Time
}

// Tally returns the last tally, and false if there is none, or if it is too old. Call it within Exclusive.
func (s *Store) Tally() (Tally, bool) {
	raw, err := os.ReadFile(filepath.Join(s.dir, changesFile))
	if err != nil {
		return Tally{}, false
	}
	var bytes, measured int64
	if n, err := fmt.Sscanf(string(raw), "%d %d\n", &bytes, &measured); n != 2 || err != nil || bytes < 0 {
		return Tally{}, false
	}
	t := Tally{bytes, time.Unix(0, measured)}
	age := s.now().Sub(t.Measured)
	return t, age >= 0 && age <= tallyAge
}

// SetTally replaces the tally. Call it within Exclusive, before the space is reserved. If that fails, there is none.
func (s *Store) SetTally(t Tally) {
	path := filepath.Join(s.dir, changesFile)
	if os.WriteFile(path, fmt.Appendf(nil, "%d %d\n", t.Bytes, t.Measured.UnixNano()), fileMode) != nil {
		_ = os.Truncate(path, 0)
	}
}
