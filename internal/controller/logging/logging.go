// Package logging passes the logger of a reconciliation in its context.
package logging

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// FromContext returns the logger in a context, or a logger that discards all records if there is
// none.
func FromContext(ctx context.Context) *slog.Logger {
	if log := logr.FromContextAsSlogLogger(ctx); log != nil {
		return log
	}
	return slog.New(slog.DiscardHandler)
}

// intoContext returns a context with a logger.
func intoContext(ctx context.Context, log *slog.Logger) context.Context {
	return logr.NewContextWithSlogLogger(ctx, log)
}

// With returns a context whose logger adds attributes to each record.
func With(ctx context.Context, attributes ...any) context.Context {
	return intoContext(ctx, FromContext(ctx).With(attributes...))
}
