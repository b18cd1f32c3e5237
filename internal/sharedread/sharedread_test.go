package sharedread

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xpkg-dev/xpkg/internal/pause"
)

// counter is a read that takes ten milliseconds and returns its number.
type counter struct {
	mu    sync.Mutex
	reads int
	err   error
}

func (c *counter) read(ctx context.Context) (int, error) {
	c.mu.Lock()
	c.reads++
	n, err := c.reads, c.err
	c.mu.Unlock()
	if pause.For(ctx, readTime) != nil {
		return 0, ctx.Err()
	}
	return n, err
}

const readTime = 10 * time.Millisecond

// Reads that take longer begin less often.
func TestLongReadsAreSpacedFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]time.Duration{
			readTime: spacing, 100 * time.Millisecond: 500 * time.Millisecond, 600 * time.Millisecond: maxSpacing,
			2 * time.Second: 2 * time.Second,
		} {
			var s Read[int]
			var began []time.Time
			for range 2 {
				_, err := s.Get(t.Context(), 0, func(ctx context.Context) (int, error) {
					began = append(began, time.Now())
					_ = pause.For(ctx, took)
					return 0, nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := began[1].Sub(began[0]); got != want {
				t.Errorf("after a read of %s, the next one began after %s, want %s", took, got, want)
			}
		}
	})
}

// All callers that wait for a new read share the next one, and not the one that began before they asked.
func TestConcurrentCallersShareTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Read[int]
		var c counter
		var group sync.WaitGroup
		get := func(want int) {
			group.Go(func() {
				if got, err := s.Get(t.Context(), 0, c.read); got != want || err != nil {
					t.Errorf("got the read %d (%v), want %d", got, err, want)
				}
			})
		}
		get(1)
		_ = pause.For(t.Context(), readTime/2)
		for range 20 {
			get(2)
		}
		group.Wait()
		if c.reads != 2 {
			t.Errorf("%d reads for 21 callers", c.reads)
		}
	})
}

func TestRecentReadIsUsedUpToItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Read[int]
		var c counter
		for i, want := range []int{1, 1, 2} {
			got, err := s.Get(t.Context(), 3*time.Second, c.read)
			if got != want || err != nil {
				t.Errorf("call %d used the read %d (%v), want %d", i, got, err, want)
			}
			_ = pause.For(t.Context(), time.Second*3/2)
		}
		if got, _ := s.Get(t.Context(), 0, c.read); got != 3 {
			t.Errorf("a new read was asked for, and the read %d was used", got)
		}
	})
}

func TestFailedReadIsRepeatedAndReadsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Read[int]
		failure, began := errors.New("no answer"), time.Now()
		fail := func(context.Context) (int, error) { return 0, failure }
		for range 3 {
			if _, err := s.Get(t.Context(), time.Hour, fail); !errors.Is(err, failure) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(began); took != 2*spacing {
			t.Errorf("three reads took %s, want a pause of %s before the second and the third", took, spacing)
		}
	})
}

// The read of a caller that gave up is repeated for the others.
func TestCanceledReadIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Read[int]
		var c counter
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := s.Get(ctx, 0, c.read); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that gave up got %v", err)
			}
		})
		_ = pause.For(t.Context(), time.Millisecond)
		group.Go(func() {
			if got, err := s.Get(t.Context(), time.Minute, c.read); got != 2 || err != nil {
				t.Errorf("got the read %d (%v), want 2", got, err)
			}
		})
		_ = pause.For(t.Context(), time.Millisecond)
		cancel()
		group.Wait()
	})
}

// The last result is returned as long as it is recent, and a failed read has none.
func TestLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Read[int]
		var c counter
		if _, ok := s.Last(time.Hour); ok {
			t.Error("a result before the first read")
		}
		if _, err := s.Get(t.Context(), 0, c.read); err != nil {
			t.Fatal(err)
		}
		if n, ok := s.Last(readTime); !ok || n != 1 {
			t.Errorf("result %d (%t), want 1", n, ok)
		}
		_ = pause.For(t.Context(), readTime)
		if n, ok := s.Last(readTime); ok {
			t.Errorf("result %d of a read that began too long ago", n)
		}
		c.err = errors.New("failed")
		_, _ = s.Get(t.Context(), 0, c.read)
		if n, ok := s.Last(time.Hour); ok {
			t.Errorf("result %d of a failed read", n)
		}
	})
}
