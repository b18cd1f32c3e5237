package registry

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// backendFault is an error of a response of the backend: the request of the client can be valid.
type backendFault struct{ error }

// Unwrap returns the error.
func (e backendFault) Unwrap() error { return e.error }

// ofBackend returns the error of a read of the registry, so that a response that is not valid is no fault of the
// client.
func ofBackend(err error) error {
	if errcode.IsOfContent(err) {
		return backendFault{err}
	}
	return err
}

// recovering returns a handler that responds to a request for which another one panics, and logs the panic. The server
// of package http would close the connection without a response.
func recovering(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint // As package http compares it.
				panic(cause)
			}
			log.Error(
				"the server failed to respond", "method", r.Method, "path", r.URL.Path, "error", cause, "stack",
				string(debug.Stack()),
			)
			if recorder.status != 0 {
				panic(http.ErrAbortHandler) // The response is incomplete.
			}
			protocol.WriteError(
				recorder, r, http.StatusInternalServerError, protocol.CodeUnknown,
				"the server failed to respond; its log has the cause",
			)
		}()
		next.ServeHTTP(recorder, r)
	})
}

// emptyListTime is the time after which a registry that listed repositories before has none.
const emptyListTime = 5 * time.Minute

// emptyList finds out whether a registry has no repositories, or no versions, any more. Some registries respond with an
// empty list while their storage fails.
type emptyList struct {
	// listed means that the last complete list had entries, and since is the time of the first empty one after it.
	listed bool
	since  time.Time
	// accepted means that this process has used a list. Before, an empty one is compared with what an earlier process has
	// listed.
	accepted bool
}

// accept uses a list.
func (e *emptyList) accept(number int) { *e = emptyList{listed: number > 0, accepted: true} }

// check fails for an empty list that follows one with entries, until the registry has responded with it for a while.
func (e *emptyList) check(host, entries string, number int, now time.Time) error {
	if number > 0 || !e.listed {
		e.accept(number)
		return nil
	}
	if e.since.IsZero() {
		e.since = now
	}
	if now.Sub(e.since) >= emptyListTime {
		e.accept(0)
		return nil
	}
	return ErrServer.New(
		nil, "%s lists no %s any more; the index keeps its packages until the list was empty for %s", host, entries,
		emptyListTime,
	)
}
