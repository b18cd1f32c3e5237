package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// inProcess sends requests to a handler of this process, without a connection.
type inProcess struct {
	handler http.Handler
	running sync.WaitGroup
}

// wait waits until no handler runs. A canceled request returns before its handler does. No request may start meanwhile.
func (t *inProcess) wait() { t.running.Wait() }

// RoundTrip implements [http.RoundTripper].
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	answer := &pipeAnswer{header: http.Header{}, writer: writer, started: make(chan struct{})}
	// With the key of package http, a proxy panics when its backend ends a response early. Without it, the proxy ends the
	// response as if it were complete.
	request := r.Clone(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{}))
	if request.Body == nil {
		request.Body = http.NoBody
	}
	// A handler that writes to a client that no longer reads ends, too.
	cancel := context.AfterFunc(r.Context(), func() { _ = reader.CloseWithError(r.Context().Err()) })
	t.running.Go(func() {
		defer cancel()
		defer func() {
			// A panic would end the process, also that of a proxy whose backend ends a response early.
			if cause := recover(); cause != nil {
				answer.WriteHeader(http.StatusInternalServerError)
				_ = writer.CloseWithError(errEnded(cause)) // It never fails.
			}
		}()
		t.handler.ServeHTTP(answer, request)
		answer.WriteHeader(http.StatusOK)
		_ = writer.Close() // It never fails.
	})
	select {
	case <-answer.started:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: reader, ContentLength: -1, Request: r,
	}, nil
}

// errEnded returns the error for a handler that has not completed its response.
func errEnded(cause any) error {
	if cause == http.ErrAbortHandler { //nolint:errorlint // As package http compares it.
		return fmt.Errorf("the registry has ended the response: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("the registry failed to respond: %v", cause)
}

// pipeAnswer is the response of a handler, which the receiver reads from a pipe.
type pipeAnswer struct {
	header, sent http.Header
	status       int
	writer       *io.PipeWriter
	once         sync.Once
	started      chan struct{}
}

// Header implements [http.ResponseWriter].
func (a *pipeAnswer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *pipeAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.started)
	})
}

// Write implements [http.ResponseWriter].
func (a *pipeAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.writer.Write(p)
}
