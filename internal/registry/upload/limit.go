// Package upload limits the size, the number and the order of uploads to a registry.
package upload

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/limit"
)

// errTooLarge is the read error of the body of an upload that exceeds a limit.
var errTooLarge = errors.New("the upload exceeds a limit of the registry")

// Options configure a handler of uploads.
type Options struct {
	// Most is the maximum size of a blob in bytes.
	Most int64
	// Hint is the advice in the response to a larger one.
	Hint string
	// Limiter has the unfinished uploads and the disk.
	Limiter *limit.Limiter
}

// uploads limits the uploads to a registry, including blobs that arrive in chunks.
type uploads struct {
	Options
	next http.Handler
}

// Limit returns a handler of requests that are permitted already. It rejects blobs that exceed a limit while they
// arrive, and cancels their uploads, which removes the received part from disk. It starts no more uploads than the
// limits allow.
func Limit(o Options, next http.Handler) http.Handler { return &uploads{o, next} }

// ServeHTTP implements [http.Handler].
func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isBlob := strings.Contains(r.URL.Path, "/blobs/uploads")
	switch {
	case !isBlob || isRead(r):
		u.next.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		u.begin(w, r)
	case r.Method == http.MethodPatch, r.Method == http.MethodPut:
		u.receive(w, r)
	default:
		u.next.ServeHTTP(w, r)
		u.Limiter.Uploads.Remove(r.URL.Path)
	}
}

// use returns the entry of an upload. It responds to a request that is refused.
func (u *uploads) use(w http.ResponseWriter, r *http.Request, path string) (e *limit.Entry, isNew bool) {
	client, _ := limit.ClientOf(r.Context())
	e, isNew, removed, refused := u.Limiter.Uploads.Use(client, path)
	for _, path := range removed {
		u.cancel(r, path)
	}
	if refused != nil {
		refused.Write(w, r)
	}
	return e, isNew
}

// begin starts an upload. It declines an upload in a single POST with a response that requires a
// PUT, as the specification allows, because the registry would keep the file of a blob that exceeds
// the limit.
func (u *uploads) begin(w http.ResponseWriter, r *http.Request) {
	key := rand.Text() // The path of the upload is not known yet.
	e, _ := u.use(w, r, key)
	if e == nil {
		return
	}
	defer u.Limiter.Uploads.Done(e)
	query := r.URL.Query()
	query.Del("digest")
	r = r.Clone(r.Context())
	r.URL.RawQuery, r.Body, r.ContentLength = query.Encode(), http.NoBody, 0
	r.Header.Del("Content-Length")
	a := &answer{ResponseWriter: w, entry: e, uploads: u}
	defer func() {
		if !a.isOpen { // It was refused, mounted, or failed.
			u.Limiter.Uploads.Remove(key)
		}
	}()
	u.next.ServeHTTP(a, r)
}

// receive forwards a part of an upload as long as the upload stays within the limits.
func (u *uploads) receive(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	e, isNew := u.use(w, r, path)
	if e == nil {
		return
	}
	defer u.Limiter.Uploads.Done(e)
	body := &countedBody{ReadCloser: r.Body, uploads: u, entry: e}
	if r.ContentLength > 0 {
		body.check(r.ContentLength)
	}
	a := &answer{ResponseWriter: w, entry: e, uploads: u, body: body}
	if !body.exceeded() {
		u.next.ServeHTTP(a, limit.WithBody(r, body))
	}
	switch isFinished := r.Method == http.MethodPut && a.status < http.StatusMultipleChoices; {
	case body.exceeded():
		u.cancel(r, path)
		if body.isTooLarge {
			u.Limiter.Uploads.Fill(e) // A registry that does not cancel it receives no more.
		} else {
			u.Limiter.Uploads.Remove(path)
		}
		w.Header().Set("Connection", "close")
		body.refuse(w, r)
	case isFinished, isNew && !a.isOpen:
		u.Limiter.Uploads.Remove(path)
	case r.Method == http.MethodPut && a.status == http.StatusBadRequest:
		u.cancel(r, path) // The content has another digest: the upload cannot be continued.
		u.Limiter.Uploads.Remove(path)
	}
}

// cancelTime is the time in which a registry must cancel an upload.
const cancelTime = 10 * time.Second

// cancel cancels an upload in the registry.
func (u *uploads) cancel(r *http.Request, path string) {
	ctx, end := context.WithTimeout(context.WithoutCancel(r.Context()), cancelTime)
	defer end()
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, path, nil)
	if err == nil {
		u.next.ServeHTTP(discard{http.Header{}}, request)
	}
}

// countedBody is a body whose reads fail with errTooLarge once the upload exceeds a limit.
type countedBody struct {
	io.ReadCloser
	uploads *uploads
	entry   *limit.Entry
	// isTooLarge means that the blob exceeds its limit, and refused that the client or the server has no room for it.
	isTooLarge bool
	refused    *limit.Refusal
}

// check finds out whether n more bytes are within the limits.
func (b *countedBody) check(n int64) {
	table := b.uploads.Limiter.Uploads
	size := table.Grow(b.entry, 0)
	if b.isTooLarge = n > b.uploads.Most-size; !b.isTooLarge {
		b.refused = table.CheckRoom(b.entry, n, b.uploads.Limiter.Disk.Room())
	}
}

func (b *countedBody) exceeded() bool { return b.isTooLarge || b.refused != nil }

// Read implements [io.Reader].
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if b.check(int64(n)); b.exceeded() {
			return 0, errTooLarge
		}
		b.uploads.Limiter.Uploads.Grow(b.entry, int64(n))
	}
	return n, err
}

// refuse writes the response to an upload that exceeds a limit.
func (b *countedBody) refuse(w http.ResponseWriter, r *http.Request) {
	if b.refused != nil {
		b.refused.Write(w, r)
		return
	}
	writeError(w, fmt.Sprintf("the blob has more than %d bytes; %s", b.uploads.Most, b.uploads.Hint))
}

// answer drops the response of the registry to a body that exceeded a limit, and follows the path of the upload.
type answer struct {
	http.ResponseWriter
	entry   *limit.Entry
	uploads *uploads
	body    *countedBody
	status  int
	// isOpen means that the upload can be continued.
	isOpen bool
}

func (a *answer) isDropped() bool { return a.body != nil && a.body.exceeded() }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.isDropped() {
		a.Header().Del("Content-Length") // Another response is sent.
		return
	}
	if a.status == 0 && status == http.StatusAccepted {
		location, err := url.Parse(a.Header().Get("Location"))
		if err == nil && strings.Contains(location.Path, "/blobs/uploads/") {
			a.isOpen = true
			a.uploads.Limiter.Uploads.Rename(a.entry, location.Path)
		}
	}
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) {
	if a.isDropped() {
		return len(p), nil
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

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
