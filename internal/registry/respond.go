package registry

import (
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// backendFault is an error of a response of the backend: the request of the client can be valid.
type backendFault struct{ error }

// Unwrap returns the error.
func (e backendFault) Unwrap() error { return e.error }

// ofBackend returns the error of a read of the registry, so that a response that is not valid is no fault of the client.
func ofBackend(err error) error {
	if errcode.IsOfContent(err) {
		return backendFault{err}
	}
	return err
}

// recovering returns a handler that responds to a request for which another one panics, and logs the panic. The server of package http would close
// the connection without a response.
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
			log.Error("the server failed to respond", "method", r.Method, "path", r.URL.Path, "error", cause, "stack", string(debug.Stack()))
			if recorder.status != 0 {
				panic(http.ErrAbortHandler) // The response is incomplete.
			}
			protocol.WriteError(recorder, r, http.StatusInternalServerError, protocol.CodeUnknown, "the server failed to respond; its log has the cause")
		}()
		next.ServeHTTP(recorder, r)
	})
}
