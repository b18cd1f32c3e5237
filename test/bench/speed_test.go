package bench_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/usage"
)

// speedInterval is the interval between two measurements of the speed of the processors. Each takes about a hundredth
// of it.
const speedInterval = 50 * time.Millisecond

// fixedWork is a piece of work whose processor time is measured: it depends on the speed of a processor only.
var fixedWork = rand.New(rand.NewPCG(1, 2)).Perm(8192)

// measureSpeed measures the processor time of the fixed work in intervals, and returns a function that ends the
// measurement and returns the median. The processors of a virtual machine share cores and caches with other machines,
// and with each other. No counter shows this, but the same work can take twice the processor time.
func measureSpeed(t testing.TB) (stop func() time.Duration) {
	t.Helper()
	end, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		tick := time.NewTicker(speedInterval)
		defer tick.Stop()
		var times []time.Duration
		for {
			times = append(times, workTime())
			select {
			case <-tick.C:
			case <-end:
				slices.Sort(times)
				result <- times[len(times)/2]
				return
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-result
	}
}

// workTime returns the processor time of the fixed work. Only systems on which the benchmark does not run cannot
// measure it.
func workTime() time.Duration {
	numbers := slices.Clone(fixedWork)
	before, _ := usage.Thread()
	slices.Sort(numbers)
	after, _ := usage.Thread()
	return after - before
}

// atSpeedOf returns a time of r as it would be at the speed that the processors had during another row.
func (r row) atSpeedOf(other row, d time.Duration) time.Duration {
	if r.work == 0 || other.work == 0 {
		return d
	}
	return time.Duration(float64(d) * float64(other.work) / float64(r.work))
}

// ratio returns how many times as long a time of r is as that of another row, at the same speed of the processors.
func (r row) ratio(d time.Duration, other row, of time.Duration) float64 {
	return r.atSpeedOf(other, d).Seconds() / of.Seconds()
}
