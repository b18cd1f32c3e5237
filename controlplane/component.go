package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A component is a part of the control plane that runs until it is stopped. It has
// a context of its own: parts stop in the reverse order of their start, and not all
// at once when the process is told to stop.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error // to be read after done is closed
}

func startComponent(ctx context.Context, name string, run func(context.Context) error) *component {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run(ctx)
	}()
	return c
}

// failure says why a component ended that nobody stopped.
func (c *component) failure() error {
	<-c.done
	if c.err == nil {
		return fmt.Errorf("%s ended by itself", c.name)
	}
	return fmt.Errorf("%s: %w", c.name, c.err)
}

// stop ends the component and waits for it, but not for longer than the grace: etcd
// has every write that was acknowledged, whatever the others still wait for.
func (c *component) stop(grace time.Duration) {
	c.cancel()
	select {
	case <-c.done:
	case <-time.After(grace):
	}
}

// errStopped says that the process was told to stop before it was ready.
var errStopped = errors.New("stopped before it was ready")

// await asks until the condition holds, a component ends, or the process is told to
// stop.
func await(ctx context.Context, condition func(context.Context) bool, watched ...*component) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, c := range watched {
		go func() {
			select {
			case <-c.done:
				cancel(c.failure())
			case <-ctx.Done():
			}
		}()
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if condition(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return errStopped
		case <-tick.C:
		}
	}
}
