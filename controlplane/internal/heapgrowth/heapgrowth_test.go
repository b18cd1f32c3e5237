package heapgrowth

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// A busy heap grows by a fixed number of bytes until the usual growth is more.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		inUse, room uint64
		want        int
	}{
		{0, room, 6400},
		{smallest, room, 6400},
		{64 << 20, room, 400},
		{128 << 20, room, 200},
		{512 << 20, room, usual},
		{8 << 30, room, usual},
		{math.MaxUint64, room, usual},
		{0, startRoom, 1600},
		{64 << 20, startRoom, 100},
		{128 << 20, startRoom, usual},
	} {
		if got := percent(c.inUse, c.room); got != c.want {
			t.Errorf("percent(%d, %d) = %d, want %d", c.inUse, c.room, got, c.want)
		}
	}
}

// A process is busy from its start, and when collections follow each other, until none has followed for some time.
func TestBusyAndIdle(t *testing.T) {
	former := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(former) })
	synctest.Test(t, func(t *testing.T) {
		u := newTuner()
		check := func(busy bool) {
			t.Helper()
			synctest.Wait()
			u.mu.Lock()
			defer u.mu.Unlock()
			set := debug.SetGCPercent(usual)
			debug.SetGCPercent(set)
			if u.busy != busy || (set > usual) != busy {
				t.Errorf("busy: %t, growth: %d %%, want busy: %t", u.busy, set, busy)
			}
		}
		check(true)
		time.Sleep(idleAfter - time.Second)
		u.collected()
		time.Sleep(idleAfter - time.Second)
		check(true)
		time.Sleep(time.Second)
		check(false)
		for range 3 {
			time.Sleep(busyWithin)
			u.collected()
			check(false)
		}
		time.Sleep(busyWithin - time.Second)
		u.collected()
		check(true)
		time.Sleep(idleAfter)
		check(false)
	})
}

func TestEachCollectionIsReported(t *testing.T) {
	reported := make(chan struct{}, 1)
	afterCollection(func() {
		select {
		case reported <- struct{}{}:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		<-reported
	}
}
