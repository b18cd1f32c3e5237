package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run in a synctest bubble, where time passes when all goroutines wait.

// wants requests a background token, and returns the channel that receives it.
func wants(t *testing.T, l *Limiter, s Class) <-chan Token {
	t.Helper()
	out := make(chan Token, 1)
	go func() {
		if admitted, err := l.Acquire(t.Context(), s); err == nil {
			out <- admitted
		}
	}()
	synctest.Wait()
	return out
}

func came(c <-chan Token) bool {
	synctest.Wait()
	return len(c) > 0
}

func full(t *testing.T, l *Limiter) []Token {
	t.Helper()
	var out []Token
	for range startLimit {
		admitted, err := l.Acquire(t.Context(), WriteObject)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, admitted)
	}
	return out
}

func TestLimiterAdmitsCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		tokens := full(t, l)
		if tokens[0].saturated || !tokens[startLimit-1].saturated {
			t.Error("only the last call reaches the limit")
		}
		first, second := wants(t, l, WriteObject), wants(t, l, WriteMetadata)
		if came(first) || came(second) {
			t.Fatal("more calls than the limit")
		}
		l.Release(tokens[0], Result{Class: WriteObject})
		if !came(first) || came(second) {
			t.Error("the first waiting call is not admitted first")
		}
		l.Cancel(WriteObject)
		if !came(second) {
			t.Error("a canceled call does not release its token")
		}
	})
}

func TestReadsAreAdmittedWhileWritesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		full(t, l)
		for range 50 {
			wants(t, l, WriteObject)
		}
		for range startLimit / 2 {
			if !came(wants(t, l, Read)) {
				t.Fatal("a read waits for writes")
			}
		}
		if came(wants(t, l, Read)) {
			t.Error("reads have no limit")
		}
	})
}

func TestLimiterPausesWhenThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		admitted, err := l.Acquire(t.Context(), WriteObject)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		l.Release(admitted, Result{Class: WriteObject, Throttled: true, After: 7 * time.Second})
		write, read := wants(t, l, WriteObject), wants(t, l, Read)
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
		l := New()
		tokens, began := full(t, l), time.Now()
		l.Release(tokens[0], Result{Class: WriteObject, Throttled: true, After: 5 * time.Second})
		write := wants(t, l, WriteObject)
		l.Release(tokens[1], Result{Class: WriteObject, Throttled: true, After: 9 * time.Second})
		l.Release(tokens[2], Result{Class: WriteObject, Throttled: true, After: time.Second})
		for _, admitted := range tokens[3:] {
			l.Release(admitted, Result{Class: WriteObject})
		}
		<-write
		if waited := time.Since(began); waited != 9*time.Second {
			t.Errorf("waited %s, want 9s", waited)
		}
	})
}

func TestCanceledCallReleasesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		tokens := full(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx, WriteObject)
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := l.Acquire(ctx, Read); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that was canceled before: %v", err)
		}
		next := wants(t, l, WriteObject)
		l.Release(tokens[0], Result{Class: WriteObject})
		if !came(next) {
			t.Error("the token of a call that no longer waits is lost")
		}
	})
}

// A token is not lost if its call is canceled at the moment of its admission.
func TestLimiterLosesNoToken(t *testing.T) {
	l := New()
	done := make(chan struct{})
	for range 100 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if admitted, err := l.Acquire(ctx, WriteObject); err == nil {
					l.Release(admitted, Result{Class: WriteObject, Failed: true})
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
