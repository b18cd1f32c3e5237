package registry

import (
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

// patientBody extends the deadline of the connection with each read. A recorder of a test has no deadline, so errors are ignored.
type patientBody struct {
	io.ReadCloser
	controller *http.ResponseController
}

// Read implements [io.Reader].
func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.controller.SetReadDeadline(time.Now().Add(patience))
	return b.ReadCloser.Read(p)
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
