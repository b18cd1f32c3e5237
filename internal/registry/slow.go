package registry

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/upload"
)

// patience is the time for which a client may send or receive nothing. A transfer of any length is allowed, as long as it makes
// progress.
const patience = time.Minute

// dropSlow returns a handler that ends the connections of clients that make no progress.
func dropSlow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			r = upload.WithBody(r, &patientBody{ReadCloser: r.Body, controller: c})
		}
		next.ServeHTTP(&patientWriter{ResponseWriter: w, controller: c}, r)
	})
}

// patientBody extends the deadline of the connection with each read, and removes it at the end of the body: package http cancels a request when the
// deadline passes, and a registry behind the server can take longer to store the content. A recorder of a test has no deadline, so errors are ignored.
type patientBody struct {
	io.ReadCloser
	controller *http.ResponseController
	// end is the time by which the client must have sent the body; zero for a body that can take any time.
	end time.Time
}

// limitBody limits the time in which a client must have sent the body of a request.
func limitBody(r *http.Request, limit time.Duration) {
	if b, ok := r.Body.(*patientBody); ok {
		b.end = time.Now().Add(limit)
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
		_ = b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
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
