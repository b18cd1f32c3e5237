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

// stopAll stops components at the same time.
func stopAll(components []*component, grace time.Duration) {
	for _, c := range components {
		c.cancel()
	}
	deadline := time.Now().Add(grace)
	for _, c := range components {
		c.stop(time.Until(deadline))
	}
}

// errStopped says that the process was told to stop.
var errStopped = errors.New("stopped")

// watch gives a context that ends with a component; its cause is then the failure.
func watch(ctx context.Context, components ...*component) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, c := range components {
		go func() {
			select {
			case <-c.done:
				cancel(c.failure())
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// reason is why a context of watch ended: the failure of a component, or errStopped.
func reason(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errStopped
}

// await asks until the condition holds. It gives up when a component ends or the
// process is told to stop.
func await(ctx context.Context, condition func(context.Context) bool, components ...*component) error {
	ctx, cancel := watch(ctx, components...)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition(ctx) {
		select {
		case <-ctx.Done():
			return reason(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// supervise waits until a component ends, which is an error, or the process is told
// to stop, which is none.
func supervise(ctx context.Context, components ...*component) error {
	ctx, cancel := watch(ctx, components...)
	defer cancel()
	<-ctx.Done()
	if err := reason(ctx); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}
