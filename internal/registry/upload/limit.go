// Package upload limits the size and the order of uploads to a registry.
package upload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sessionLife is the time for which the size of an upload is kept after its last request. The
// registry itself ends idle uploads after an hour.
const sessionLife = 2 * time.Hour

// errTooLarge is the read error of the body of an upload that exceeds the limit.
var errTooLarge = errors.New("the upload exceeds the limit of the registry")

// uploadLimit limits the size of blobs, including blobs that arrive in chunks.
type uploadLimit struct {
	most int64
	hint string
	next http.Handler

	mu       sync.Mutex
	sessions map[string]*session
}

// session is an upload in progress.
type session struct {
	received int64
	used     time.Time
}

// Limit returns a handler that rejects blobs of more than most bytes with 413 while they arrive, and cancels their
// uploads, which removes the received part from disk. The hint is the advice in the response.
func Limit(most int64, hint string, next http.Handler) http.Handler {
	return &uploadLimit{most: most, hint: hint, next: next, sessions: map[string]*session{}}
}

// ServeHTTP implements [http.Handler].
func (l *uploadLimit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isBlob := strings.Contains(r.URL.Path, "/blobs/uploads")
	switch {
	case !isBlob || isRead(r):
		l.next.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		l.begin(w, r)
	case r.Method == http.MethodPatch, r.Method == http.MethodPut:
		l.receive(w, r)
	default:
		l.forget(r.URL.Path)
		l.next.ServeHTTP(w, r)
	}
}

// begin starts an upload. It declines an upload in a single POST with a response that requires a
// PUT, as the specification allows, because the registry would keep the file of a blob that exceeds
// the limit.
func (l *uploadLimit) begin(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	query.Del("digest")
	r = r.Clone(r.Context())
	r.URL.RawQuery, r.Body, r.ContentLength = query.Encode(), http.NoBody, 0
	r.Header.Del("Content-Length")
	l.next.ServeHTTP(w, r)
}

// receive forwards a part of an upload as long as the upload stays within the limit.
func (l *uploadLimit) receive(w http.ResponseWriter, r *http.Request) {
	body := &countedBody{ReadCloser: r.Body, limit: l, session: l.session(r.URL.Path)}
	if r.ContentLength > 0 && !l.fits(body.session, r.ContentLength) {
		body.exceeded = true
	}
	answer := &limitedAnswer{ResponseWriter: w, body: body}
	if !body.exceeded {
		l.next.ServeHTTP(answer, WithBody(r, body))
	}
	if body.exceeded {
		l.cancel(r)
		w.Header().Set("Connection", "close")
		writeError(w,
			fmt.Sprintf("the blob has more than %d bytes; %s", l.most, l.hint))
	}
	if r.Method == http.MethodPut && !body.exceeded {
		l.forget(r.URL.Path)
	}
}

// WithBody returns a request with another body. The server keeps the original request: only if its body is the server's own, the server
// closes the connection of a rejected upload so that the client receives the response before a reset.
func WithBody(r *http.Request, body io.ReadCloser) *http.Request {
	r = r.WithContext(r.Context())
	r.Body = body
	return r
}

// cancel cancels an upload in the registry, with the credentials of the client. The size of the upload is kept, so that a registry that does not
// cancel it receives no more.
func (l *uploadLimit) cancel(r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodDelete, r.URL.RequestURI(), nil)
	if err == nil {
		request.Header["Authorization"] = r.Header["Authorization"]
		l.next.ServeHTTP(discard{http.Header{}}, request)
	}
}

func (l *uploadLimit) session(path string) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for other, s := range l.sessions {
		if now.Sub(s.used) > sessionLife {
			delete(l.sessions, other)
		}
	}
	s, ok := l.sessions[path]
	if !ok {
		s = &session{}
		l.sessions[path] = s
	}
	s.used = now
	return s
}

func (l *uploadLimit) forget(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, path)
}

// fits reports whether an upload has room for n more bytes.
func (l *uploadLimit) fits(s *session, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return n <= l.most-s.received
}

// count adds received bytes to an upload, and reports whether it is within the limit.
func (l *uploadLimit) count(s *session, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.received += n
	s.used = time.Now()
	return s.received <= l.most
}

// countedBody is a body whose reads fail with errTooLarge once the upload exceeds the limit.
type countedBody struct {
	io.ReadCloser
	limit    *uploadLimit
	session  *session
	exceeded bool
}

// Read implements [io.Reader].
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.limit.count(b.session, int64(n)) {
		b.exceeded = true
		return 0, errTooLarge
	}
	return n, err
}

// limitedAnswer drops the response of the registry to a body that exceeded the limit.
type limitedAnswer struct {
	http.ResponseWriter
	body *countedBody
}

// WriteHeader implements [http.ResponseWriter].
func (a *limitedAnswer) WriteHeader(status int) {
	if !a.body.exceeded {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (a *limitedAnswer) Write(p []byte) (int, error) {
	if a.body.exceeded {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (a *limitedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// writeError writes an error of the OCI distribution specification.
func writeError(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusRequestEntityTooLarge)
	// An error means that the client has disconnected.
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": "DENIED", "message": message}}})
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// discard is a response that no client receives.
type discard struct{ header http.Header }

// Header implements [http.ResponseWriter].
func (d discard) Header() http.Header { return d.header }

// WriteHeader implements [http.ResponseWriter].
func (d discard) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
