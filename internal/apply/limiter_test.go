package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run in a synctest bubble, where time passes when all goroutines wait.

// wants requests a background token, and returns the channel that receives it.
func wants(t *testing.T, l *limiter, s callClass) <-chan token {
	t.Helper()
	out := make(chan token, 1)
	go func() {
		if admitted, err := l.acquire(t.Context(), s); err == nil {
			out <- admitted
		}
	}()
	synctest.Wait()
	return out
}

func came(c <-chan token) bool {
	synctest.Wait()
	return len(c) > 0
}

func full(t *testing.T, l *limiter) []token {
	t.Helper()
	var out []token
	for range startLimit {
		admitted, err := l.acquire(t.Context(), writeObject)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, admitted)
	}
	return out
}

func TestLimiterAdmitsCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		tokens := full(t, l)
		if tokens[0].saturated || !tokens[startLimit-1].saturated {
			t.Error("only the last call reaches the limit")
		}
		first, second := wants(t, l, writeObject), wants(t, l, writeMetadata)
		if came(first) || came(second) {
			t.Fatal("more calls than the limit")
		}
		l.release(tokens[0], result{class: writeObject})
		if !came(first) || came(second) {
			t.Error("the first waiting call is not admitted first")
		}
		l.cancel(writeObject)
		if !came(second) {
			t.Error("a canceled call does not release its token")
		}
	})
}

func TestReadsAreAdmittedWhileWritesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		full(t, l)
		for range 50 {
			wants(t, l, writeObject)
		}
		for range startLimit / 2 {
			if !came(wants(t, l, readAny)) {
				t.Fatal("a read waits for writes")
			}
		}
		if came(wants(t, l, readAny)) {
			t.Error("reads have no limit")
		}
	})
}

func TestLimiterPausesWhenThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		admitted, err := l.acquire(t.Context(), writeObject)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		l.release(admitted, result{class: writeObject, throttled: true, after: 7 * time.Second})
		write, read := wants(t, l, writeObject), wants(t, l, readAny)
		if came(write) || came(read) {
			t.Fatal("a call begins within the pause")
		}
		<-write
		<-read
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited %s, want the 7s of the response", waited)
		}
	})
}

// A further throttled response lengthens the pause, and never shortens it.
func TestLongestPauseApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		tokens, began := full(t, l), time.Now()
		l.release(tokens[0], result{class: writeObject, throttled: true, after: 5 * time.Second})
		write := wants(t, l, writeObject)
		l.release(tokens[1], result{class: writeObject, throttled: true, after: 9 * time.Second})
		l.release(tokens[2], result{class: writeObject, throttled: true, after: time.Second})
		for _, admitted := range tokens[3:] {
			l.release(admitted, result{class: writeObject})
		}
		<-write
		if waited := time.Since(began); waited != 9*time.Second {
			t.Errorf("waited %s, want 9s", waited)
		}
	})
}

func TestCanceledCallReleasesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		tokens := full(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := l.acquire(ctx, writeObject)
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := l.acquire(ctx, readAny); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that was canceled before: %v", err)
		}
		next := wants(t, l, writeObject)
		l.release(tokens[0], result{class: writeObject})
		if !came(next) {
			t.Error("the token of a call that no longer waits is lost")
		}
	})
}

// A token is not lost if its call is canceled at the moment of its admission.
func TestLimiterLosesNoToken(t *testing.T) {
	l := newLimiter()
	done := make(chan struct{})
	for range 100 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if admitted, err := l.acquire(ctx, writeObject); err == nil {
					l.release(admitted, result{class: writeObject, failed: true})
				}
				cancel()
			}
		}()
	}
	for range 100 {
		<-done
	}
	if l.writes.busy != 0 || len(l.writes.waiting) != 0 {
		t.Errorf("%d busy and %d waiting when all are done", l.writes.busy, len(l.writes.waiting))
	}
}
