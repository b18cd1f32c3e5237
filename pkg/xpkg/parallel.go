package xpkg

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls do for 0 to n-1, as many at the same time as there are
// processors, and returns when all are done.
func parallel(n int, do func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wait.Wait()
}
