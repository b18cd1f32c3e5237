package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A component is a part of the control plane that runs until it is stopped. It has a context of its own, because
// components stop in the reverse order of their start when the process receives a signal.
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

// failure returns the reason why a component ended without being stopped.
func (c *component) failure() error {
	<-c.done
	if c.err == nil {
		return fmt.Errorf("%s ended by itself", c.name)
	}
	return fmt.Errorf("%s: %w", c.name, c.err)
}

// stop ends the component and waits for it, but at most for the grace period: etcd has every acknowledged write.
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

// errStopped reports that the process received a signal to stop.
var errStopped = errors.New("stopped")

// watch returns a context that is canceled when a component ends, with its error as the cause.
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

// reason returns the cause of the end of a context of watch: the failure of a component, or errStopped.
func reason(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errStopped
}

// await polls until the condition holds. It fails when a component ends or the process receives a signal to stop.
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

// supervise waits until a component ends, which is an error, or the process receives a signal to stop, which is not.
func supervise(ctx context.Context, components ...*component) error {
	ctx, cancel := watch(ctx, components...)
	defer cancel()
	<-ctx.Done()
	if err := reason(ctx); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}
