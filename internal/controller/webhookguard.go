package controller

import (
	"cmp"
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// unblockTimeout limits how long a start waits for the probes of webhooks.
const unblockTimeout = 30 * time.Second

// guardWebhooks deletes the webhook configurations of packages whose endpoints do not serve, and
// keeps probing the others until ctx ends or stop is called.
//
// It runs before the first write of the manager and outside of leader election: a webhook that does
// not serve may block every write, including the renewal of the Lease.
func guardWebhooks(ctx context.Context, o Options) (stop func(), err error) {
	guard, err := webhooks.NewGuard(o.Config, o.Remote, o.Log)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, unblockTimeout)
	defer cancel()
	if err := guard.DeleteNotServing(limited); err != nil && ctx.Err() == nil {
		// The manager may lack a permission, or the API server may not respond yet: the
		// start reports that, and the guard probes again every few seconds.
		o.Log.DebugContext(ctx, "the webhook configurations of packages could not be probed", "error", err.Error())
	}
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		guard.Run(ctx, cmp.Or(o.WebhookProbe, webhooks.DefaultInterval))
	}()
	return func() { end(); <-done }, nil
}
