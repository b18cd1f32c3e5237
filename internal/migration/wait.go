package migration

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/rollout"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Wait reads the state of the cluster at an interval until nothing is missing, and reports what is missing when that
// changes. It fails with MigrationUnfinished at the deadline of the context, and at once if missing fails.
func Wait(
	ctx context.Context, interval time.Duration, report Report, missing func(context.Context) (string, error),
) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last := "the cluster does not respond"
	for {
		reason, err := missing(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && reason == "":
			return nil
		case err == nil && reason != last:
			report("%s", reason)
			last = reason
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return context.Canceled
			}
			return ErrUnfinished.New(nil, "%s", last)
		case <-tick.C:
		}
	}
}

// WaitRollout waits until a Deployment is rolled out. It fails with MigrationUnfinished at the deadline of the context,
// and at once if the Deployment has exceeded its progress deadline.
func WaitRollout(ctx context.Context, reader client.Reader, key client.ObjectKey) error {
	err := rollout.Wait(ctx, reader, key)
	var incomplete *rollout.Incomplete
	if errors.As(err, &incomplete) {
		return ErrUnfinished.New(nil, "%s", incomplete).
			WithDo(
				"Find the cause with `kubectl describe deployment --namespace %s %s` and `kubectl describe pods --namespace %s`.",
				key.Namespace, key.Name, key.Namespace,
			)
	}
	return err
}

// Explain replaces the remedy of MigrationUnfinished, and returns other errors unchanged.
func Explain(err error, format string, args ...any) error {
	if !errors.Is(err, ErrUnfinished) {
		return err
	}
	return errcode.From(err).WithDo(format, args...)
}
