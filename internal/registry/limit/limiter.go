package limit

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Kind is a kind of requests.
type Kind int

// The kinds of requests.
const (
	// Plain requests copy content, or take little.
	Plain Kind = iota
	// Check requests find out whether the server works. They have no limit of their own: they hold nothing.
	Check
	// Manifest requests have a manifest in memory.
	Manifest
	// Work requests read much for a short response.
	Work
)

const (
	// queueTime is the time for which a request waits for others of its kind.
	queueTime = 5 * time.Second
	// workTime is the time for which a request of the kind Work can prepare its response.
	workTime = time.Minute
)

// Limiter applies the limits of a server to its requests and connections.
type Limiter struct {
	// Uploads are the unfinished uploads, by path.
	Uploads *Table
	// Repositories are the repositories without a tag to which uploads were started.
	Repositories *Table
	// Disk is the file system with the content.
	Disk *Disk

	connections *Connections
	requests    *Gate
	kinds       map[Kind]*Gate
}

// The times after which something that a client holds makes room for others.
const (
	uploadIdle     = time.Minute
	repositoryIdle = time.Hour
)

// New returns a limiter with some limits for a server that stores content in a file system.
func New(l Limits, d *Disk) *Limiter {
	return &Limiter{
		Uploads:      NewTable(l.Uploads, "unfinished uploads", uploadIdle),
		Repositories: NewTable(l.Repositories, "new repositories without a version", repositoryIdle),
		Disk:         d,
		connections:  newConnections(l.Connections),
		requests:     NewGate(l.Requests, "requests in progress"),
		kinds: map[Kind]*Gate{
			Manifest: NewGate(l.Manifests, "pushes of manifests in progress"),
			Work:     NewGate(l.Work, "searches, pages and lists in progress"),
		},
	}
}

// Serve serves the connections of a listener, without TLS if the server has no certificates.
func (l *Limiter) Serve(s *http.Server, accepting net.Listener) error {
	l.connections.configure(s)
	accepting = listener{accepting, l.connections}
	if s.TLSConfig != nil && len(s.TLSConfig.Certificates) > 0 {
		return s.ServeTLS(accepting, "", "")
	}
	return s.Serve(accepting)
}

// Handler returns a handler that forwards requests within the limits, with their client in the context. Identify
// returns the client of a request; it fails if the server cannot find out now.
func (l *Limiter) Handler(
	identify func(*http.Request) (Client, error), kindOf func(*http.Request) Kind, next http.Handler,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := kindOf(r)
		if kind == Check {
			next.ServeHTTP(w, r)
			return
		}
		client, err := identify(r)
		if err != nil {
			Unavailable("the server cannot check credentials now; its log has the cause").Write(w, r)
			return
		}
		leave, refused := l.requests.Enter(client)
		if refused != nil {
			refused.Write(w, r)
			return
		}
		defer leave()
		defer l.connections.use(r.Context())()
		l.serve(w, r.WithContext(WithClient(r.Context(), client)), kind, next)
		if r.ProtoMajor > 1 {
			// A client of HTTP/2 decides when it receives the response, so the request is in progress until then.
			_ = http.NewResponseController(w).Flush()
		}
	})
}

// serve serves a request when there is room for its kind. The request makes room for others when its response begins,
// however slowly the client reads.
func (l *Limiter) serve(w http.ResponseWriter, r *http.Request, kind Kind, next http.Handler) {
	gate := l.kinds[kind]
	if gate == nil {
		next.ServeHTTP(w, r)
		return
	}
	client, _ := ClientOf(r.Context())
	queue, cancel := context.WithTimeout(r.Context(), queueTime)
	leave, refused := gate.Wait(queue, client)
	cancel()
	if refused != nil {
		refused.Write(w, r)
		return
	}
	defer leave()
	if kind == Work {
		ctx, cancel := context.WithTimeout(r.Context(), workTime)
		defer cancel()
		r = r.WithContext(ctx)
	}
	next.ServeHTTP(&leavingWriter{ResponseWriter: w, leave: leave}, r)
}

// leavingWriter calls a function when a response begins.
type leavingWriter struct {
	http.ResponseWriter
	leave func()
}

// WriteHeader implements [http.ResponseWriter].
func (w *leavingWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.leave()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *leavingWriter) Write(p []byte) (int, error) {
	w.leave()
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (w *leavingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
