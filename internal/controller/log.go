package controller

import (
	"context"
	"log/slog"

	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
)

// untilDone discards records once the manager stops: controller-runtime logs each wait that ends early as an
// error. It also drops the reconcileID of controller-runtime, because records have the name of the object, and sets the
// level of the failure of a reconciliation by its class: controller-runtime logs every failure as an error.
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
		if r.Level = levelOf(r); !h.Enabled(ctx, r.Level) {
			return nil
		}
		return h.Handler.Handle(ctx, r)
	}
}

// levelOf returns the level of a record: that of its error, if it is about one.
func levelOf(r slog.Record) slog.Level {
	level := r.Level
	if level < slog.LevelError {
		return level
	}
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		if ok {
			level = requeue.Level(err)
		}
		return !ok
	})
	return level
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
