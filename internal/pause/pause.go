// Package pause waits.
package pause

import (
	"context"
	"time"
)

// For waits for a duration. If ctx ends before, it returns the error of ctx at once.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
