package idlememory

import "testing"

// Memory is released once after much work, when the process is idle, and not after little work.
func TestMemoryIsReleasedAfterMuchWork(t *testing.T) {
	var w work
	for i, step := range []struct {
		allocated uint64
		want      bool
	}{
		{much / 2, false},         // works
		{much / 2, false},         // idle, after little work
		{2 * much, false},         // works
		{2*much + quiet, true},    // idle
		{2*much + 2*quiet, false}, // still idle
		{3*much + quiet - 1, false},
		{3*much + quiet, true},
		{5 * much, false},
		{5*much + quiet + 1, false}, // little work
		{5*much + quiet + 1, true},
	} {
		if got := w.isOver(step.allocated); got != step.want {
			t.Errorf("step %d: got %t", i, got)
		}
	}
}

func TestAllocationsAreMeasured(t *testing.T) {
	before := allocated()
	block := make([]byte, 1<<20)
	if grown := allocated() - before; grown < uint64(len(block)) {
		t.Errorf("%d bytes were allocated, and %d measured", len(block), grown)
	}
}
