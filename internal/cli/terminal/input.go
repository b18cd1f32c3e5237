package terminal

import (
	"context"
	"io"
	"os"
)

// Input returns standard input. A read ends with the error of the context when the command
// is interrupted, also while a pipe has no data.
func (e *Env) Input() io.Reader { return contextReader{e.context(), e.Stdin} }

// OpenInput opens a file, or standard input if the name is "-". Opening and reading end with
// the error of the context when the command is interrupted, also while a named pipe has no
// writer or no data.
func (e *Env) OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.Input()), nil
	}
	f, err := await(e.context(), func() (*os.File, error) { return os.Open(name) })
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{contextReader{e.context(), f}, f}, nil
}

// ReadInput reads a whole file, or standard input if the name is "-", as OpenInput does.
func (e *Env) ReadInput(name string) (_ []byte, err error) {
	in, err := e.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer Close(&err, in)
	return io.ReadAll(in)
}

// context returns the context of the command, which tests can leave out.
func (e *Env) context() context.Context {
	if e.Context == nil {
		return context.Background()
	}
	return e.Context
}

// contextReader is a reader whose reads end when the context is canceled.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.ctx.Done() == nil {
		return c.r.Read(b)
	}
	type chunk struct {
		data []byte
		err  error
	}
	// The read may end after this call returned, so it has a buffer of its own.
	got, err := await(c.ctx, func() (chunk, error) {
		buffer := make([]byte, len(b))
		n, err := c.r.Read(buffer)
		return chunk{buffer[:n], err}, nil
	})
	if err != nil {
		return 0, err
	}
	return copy(b, got.data), got.err
}

// await returns the result of a call that cannot be cancelled, or the error of the context
// when that ends first. The call then ends with the process.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case r := <-done:
		return r.value, r.err
	}
}
