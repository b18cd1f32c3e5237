package controller

import (
	"context"
	"log/slog"

	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
)

// untilDone discards records once the manager stops, because controller-runtime logs each
// interrupted wait as an error. It drops the reconcileID of controller-runtime, because records
// contain the name of the object. It also sets the level of a failed reconciliation by the class of
// the failure, because controller-runtime logs every failure as an error.
type untilDone struct {
	slog.Handler
	done <-chan struct{}
}

// slogUntil returns a logger that discards records once ctx ends.
func slogUntil(ctx context.Context, log *slog.Logger) *slog.Logger {
	return slog.New(untilDone{log.Handler(), ctx.Done()})
}

// Handle writes a record unless the manager stops. It checks Enabled, because controller-runtime
// does not before it logs an error.
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

// levelOf returns the level of a record. A record at the level Error gets the level of the first
// error in its attributes.
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
