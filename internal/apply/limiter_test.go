package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run in a bubble in which time passes when everybody waits.

// wants requests a background ticket, and returns the channel that receives it.
func wants(t *testing.T, l *limiter, s callSort) <-chan ticket {
	t.Helper()
	out := make(chan ticket, 1)
	go func() {
		if turn, err := l.acquire(t.Context(), s); err == nil {
			out <- turn
		}
	}()
	synctest.Wait()
	return out
}

func came(c <-chan ticket) bool {
	synctest.Wait()
	return len(c) > 0
}

func full(t *testing.T, l *limiter) []ticket {
	t.Helper()
	var out []ticket
	for range startLimit {
		turn, err := l.acquire(t.Context(), writeObject)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, turn)
	}
	return out
}

func TestLimiterGivesTurnsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		turns := full(t, l)
		if turns[0].crowded || !turns[startLimit-1].crowded {
			t.Error("only the last one fills the room")
		}
		first, second := wants(t, l, writeObject), wants(t, l, writeMetadata)
		if came(first) || came(second) {
			t.Fatal("more calls than there is room for")
		}
		l.release(turns[0], answer{sort: writeObject})
		if !came(first) || came(second) {
			t.Error("the first one to ask comes first")
		}
		l.cancel(writeObject)
		if !came(second) {
			t.Error("a call that is not made leaves its room to others")
		}
	})
}

func TestLimiterKeepsRoomForReads(t *testing.T) {
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

func TestLimiterPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		turn, err := l.acquire(t.Context(), writeObject)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		l.release(turn, answer{sort: writeObject, throttled: true, after: 7 * time.Second})
		write, read := wants(t, l, writeObject), wants(t, l, readAny)
		if came(write) || came(read) {
			t.Fatal("a call begins within the pause")
		}
		<-write
		<-read
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited %s, the server asked for 7s", waited)
		}
	})
}

// A further answer of a server that throttles makes a pause longer, never shorter.
func TestLimiterPausesForTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		turns, began := full(t, l), time.Now()
		l.release(turns[0], answer{sort: writeObject, throttled: true, after: 5 * time.Second})
		write := wants(t, l, writeObject)
		l.release(turns[1], answer{sort: writeObject, throttled: true, after: 9 * time.Second})
		l.release(turns[2], answer{sort: writeObject, throttled: true, after: time.Second})
		for _, turn := range turns[3:] {
			l.release(turn, answer{sort: writeObject})
		}
		<-write
		if waited := time.Since(began); waited != 9*time.Second {
			t.Errorf("waited %s, want 9s", waited)
		}
	})
}

func TestLimiterLetsGoOfThoseThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		turns := full(t, l)
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
			t.Errorf("one that has ended before it asks: %v", err)
		}
		next := wants(t, l, writeObject)
		l.release(turns[0], answer{sort: writeObject})
		if !came(next) {
			t.Error("the turn of one that has left is lost")
		}
	})
}

// Turns that come in the moment in which one leaves are not lost.
func TestLimiterLosesNoTurns(t *testing.T) {
	l := newLimiter()
	done := make(chan struct{})
	for range 100 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if turn, err := l.acquire(ctx, writeObject); err == nil {
					l.release(turn, answer{sort: writeObject, failed: true})
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
