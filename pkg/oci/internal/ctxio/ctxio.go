// Package ctxio binds readers to contexts, and records their errors.
package ctxio

import (
	"context"
	"errors"
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

// A Recorder reads R and keeps the last error of a read, other than its end, which distinguishes it from other errors
// of the operation that reads.
type Recorder struct {
	R   io.Reader
	Err error
}

// Read implements [io.Reader].
func (r *Recorder) Read(p []byte) (int, error) {
	n, err := r.R.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.Err = err
	}
	return n, err
}
