package recent_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/web/recent"
)

func TestTheMostRecentlyUsedResultsAreKept(t *testing.T) {
	r := recent.New[string, string](2)
	computed := ""
	get := func(key string) {
		t.Helper()
		got, err := r.Get(t.Context(), key, func(context.Context) (string, error) {
			computed += key
			return "result of " + key, nil
		})
		if err != nil || got != "result of "+key {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	for _, key := range []string{"a", "b", "a", "c", "a", "b"} {
		get(key)
	}
	if want := "abcb"; computed != want {
		t.Errorf("%q were computed, want %q", computed, want)
	}
}

func TestErrorsAreNotKept(t *testing.T) {
	r := recent.New[int, int](2)
	failure := errors.New("failure")
	if _, err := r.Get(
		t.Context(), 1, func(context.Context) (int, error) { return 0, failure },
	); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if got, err := r.Get(t.Context(), 1, func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestConcurrentCallersShareOneComputation(t *testing.T) {
	r := recent.New[int, int](2)
	var computed atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if got, err := r.Get(
				t.Context(), 1, func(context.Context) (int, error) { return int(computed.Add(1)), nil },
			); got != 1 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	callers.Wait()
}

func TestTheErrorOfACanceledCallerIsNotShared(t *testing.T) {
	r := recent.New[int, int](2)
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := r.Get(ctx, 1, func(ctx context.Context) (int, error) {
			close(started)
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled caller got %v", err)
		}
	}()
	<-started
	var others sync.WaitGroup
	for range 20 {
		others.Go(func() {
			if got, err := r.Get(t.Context(), 1, func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	cancel()
	others.Wait()
	<-ended
}
