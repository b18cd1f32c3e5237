package fileutil

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// Open opens a file that a user names for reading. Opening and reading end with the error of
// ctx, also while a named pipe has no writer or no data.
func Open(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := Await(ctx, func() (*os.File, error) { return os.Open(name) })
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{Reader(ctx, f), f}, nil
}

// ReadFile reads a whole file as Open does.
func ReadFile(ctx context.Context, name string) (_ []byte, err error) {
	in, err := Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := in.Close(); err == nil {
			err = closed
		}
	}()
	return io.ReadAll(in)
}

// OpenFolder opens a folder that a user names. It returns an error for any other file, and
// does not wait for a named pipe.
func OpenFolder(name string) (*os.Root, error) {
	// With a separator at the end, the kernel requires a directory.
	return os.OpenRoot(filepath.Clean(name) + string(os.PathSeparator))
}

// Reader returns a reader of r whose reads end with the error of ctx. The data of a read that
// has not ended by then is lost.
func Reader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context // io.Reader has no context parameter.
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
	// The read may end after this call returned, so it needs its own buffer.
	got, err := Await(c.ctx, func() (chunk, error) {
		buffer := make([]byte, len(b))
		n, err := c.r.Read(buffer)
		return chunk{buffer[:n], err}, nil
	})
	if err != nil {
		return 0, err
	}
	return copy(b, got.data), got.err
}

// Await returns the result of a call that cannot be canceled, or the error of ctx when that
// ends first. The call then ends with the process.
func Await[T any](ctx context.Context, call func() (T, error)) (T, error) {
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
