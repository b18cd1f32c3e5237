package controller

import (
	"context"
	"log/slog"
)

// untilDone discards records once the manager stops: controller-runtime logs each wait that ends early as an
// error. It also drops the reconcileID of controller-runtime, because records have the name of the object.
type untilDone struct {
	slog.Handler
	done <-chan struct{}
}

// slogUntil returns a logger that discards records once ctx ends.
func slogUntil(ctx context.Context, log *slog.Logger) *slog.Logger {
	return slog.New(untilDone{log.Handler(), ctx.Done()})
}

// Handle writes a record. controller-runtime does not call Enabled before it logs an error.
func (h untilDone) Handle(ctx context.Context, r slog.Record) error {
	select {
	case <-h.done:
		return nil
	default:
		return h.Handler.Handle(ctx, r)
	}
}

// WithAttrs returns a handler that adds attributes to each record.
func (h untilDone) WithAttrs(attrs []slog.Attr) slog.Handler {
	var kept []slog.Attr
	for _, a := range attrs {
		if a.Key != "reconcileID" {
			kept = append(kept, a)
		}
	}
	return untilDone{h.Handler.WithAttrs(kept), h.done}
}

// WithGroup returns a handler that puts later attributes into a group.
func (h untilDone) WithGroup(name string) slog.Handler {
	return untilDone{h.Handler.WithGroup(name), h.done}
}
