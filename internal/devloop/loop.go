// Package devloop deploys a package again whenever its files change.
package devloop

import (
	"context"
	"errors"
	"sync"
)

// Loop deploys the content of folders.
type Loop struct {
	// Snapshot returns a text that identifies the content of the folders.
	Snapshot func() (string, error)
	// Deploy deploys the content. Its context ends when the content changes meanwhile.
	Deploy func(context.Context) error
	// Pause waits before the next look at the folders, and fails when the loop must end.
	Pause func(context.Context) error
	// Failed reports a failure. The loop goes on.
	Failed func(error)
}

// Run deploys the content, and again after each change, until Pause fails. It deploys content that has not changed
// between two looks, because an editor or a generator writes several files one after the other. A change ends the
// deployment of the former content. After a failure, it waits for the next change.
func (l Loop) Run(ctx context.Context) {
	var seen, deployed, failure string
	stop := func() {}
	defer func() { stop() }()
	for {
		now, err := l.Snapshot()
		switch {
		case err != nil:
			// The content that is back is deployed, also if it is that of the last deployment.
			deployed = ""
			if failure != err.Error() {
				failure = err.Error()
				l.Failed(err)
			}
		case now == seen && now != deployed:
			stop()
			deployed, failure = now, ""
			stop = l.start(ctx)
		}
		seen = now
		if l.Pause(ctx) != nil {
			return
		}
	}
}

// start starts a deployment, and returns a function that ends it.
func (l Loop) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.Deploy(ctx); err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
			l.Failed(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
