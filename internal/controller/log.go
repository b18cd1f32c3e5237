package controller

import (
	"context"
	"log/slog"
)

// untilDone is the log of the controller library. When the manager is told to stop,
// the library takes every wait that ends early for an error, so from then on
// nothing of it is logged.
type untilDone struct {
	slog.Handler
	done <-chan struct{}
}

// Handle logs a record. The library does not ask Enabled before it logs an error.
func (h untilDone) Handle(ctx context.Context, r slog.Record) error {
	select {
	case <-h.done:
		return nil
	default:
		return h.Handler.Handle(ctx, r)
	}
}

// WithAttrs gives a log that adds attributes to each record.
func (h untilDone) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untilDone{h.Handler.WithAttrs(attrs), h.done}
}

// WithGroup gives a log that puts later attributes into a group.
func (h untilDone) WithGroup(name string) slog.Handler {
	return untilDone{h.Handler.WithGroup(name), h.done}
}
