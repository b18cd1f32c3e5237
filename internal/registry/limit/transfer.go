package limit

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// patience is the time for which a client may send or receive nothing. A transfer of any length is allowed, as long
	// as it makes progress.
	patience = time.Minute
	// restTime is the time in which a client must have sent the rest of a body that the server did not read.
	restTime = 2 * time.Second
)

// Transfers returns a handler that ends the connections of clients that make no progress.
func Transfers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(&patientWriter{ResponseWriter: w, controller: c}, r)
			return
		}
		body := &patientBody{ReadCloser: r.Body, controller: c}
		defer body.limitRest()
		next.ServeHTTP(&patientWriter{ResponseWriter: w, controller: c}, WithBody(r, body))
	})
}

// WithBody returns a request with another body. The server keeps the original request: only if its body is the server's
// own, the server closes the connection of a rejected upload so that the client receives the response before a reset.
func WithBody(r *http.Request, body io.ReadCloser) *http.Request {
	r = r.WithContext(r.Context())
	r.Body = body
	return r
}

// patientBody extends the deadline of the connection with each read, and removes it at the end of the body: package
// http cancels a request when the deadline passes, and a registry behind the server can take longer to store the
// content. A recorder of a test has no deadline, so errors are ignored.
type patientBody struct {
	io.ReadCloser
	controller *http.ResponseController
	// end is the time by which the client must have sent the body; zero for a body that can take any time.
	end time.Time
	// isRead means that the body was read to its end.
	isRead bool
}

// Body limits the time in which a client must have sent the body of a request.
func Body(r *http.Request, most time.Duration) {
	if b, ok := r.Body.(*patientBody); ok {
		b.end = time.Now().Add(most)
	}
}

// Read implements [io.Reader].
func (b *patientBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(patience)
	if !b.end.IsZero() && b.end.Before(deadline) {
		deadline = b.end
	}
	_ = b.controller.SetReadDeadline(deadline)
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.isRead = true
		_ = b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
}

// limitRest limits the time for which package http waits for the rest of a body after the response. It sets another
// deadline for the next request.
func (b *patientBody) limitRest() {
	if !b.isRead {
		_ = b.controller.SetReadDeadline(time.Now().Add(restTime))
	}
}

// patientWriter extends the deadline of the connection with each write.
type patientWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
}

// Write implements [io.Writer].
func (w *patientWriter) Write(p []byte) (int, error) {
	_ = w.controller.SetWriteDeadline(time.Now().Add(patience))
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
