// Package ctxio binds readers to contexts.
package ctxio

import (
	"context"
	"io"
)

// Reader returns a reader of r that fails with the error of ctx once ctx is done.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context // io.Reader has no context parameter.
	r   io.Reader
}

// Read implements [io.Reader].
func (c reader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
