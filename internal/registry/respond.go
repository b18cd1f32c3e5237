package registry

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// The error codes that the OCI distribution specification does not have.
const (
	codeDamaged = remote.CodeDamaged
	// codePagination and codeUnknown are codes of CNCF distribution.
	codePagination = "PAGINATION_NUMBER_INVALID"
	codeUnknown    = "UNKNOWN"
)

// The error codes of the OCI distribution specification that this package uses.
const (
	codeUnauthorized = "UNAUTHORIZED"
	codeDenied       = "DENIED"
	codeNameInvalid  = "NAME_INVALID"
	codeNameUnknown  = "NAME_UNKNOWN"
	codeUnsupported  = "UNSUPPORTED"
	codeManifest     = "MANIFEST_INVALID"
	codeBlobUnknown  = "BLOB_UNKNOWN"

	codeManifestUnknown = "MANIFEST_UNKNOWN"
	codeTooMany         = "TOOMANYREQUESTS"
)

// writeError writes a response with an error of the OCI distribution specification.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	writeJSON(w, r, status, map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
}

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

// writeJSON writes a response. The response to a HEAD has the same headers and no body.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	raw = append(raw, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(raw) // An error means that the client has disconnected.
	}
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
			writeError(recorder, r, http.StatusInternalServerError, codeUnknown, "the server failed to respond; its log has the cause")
		}()
		next.ServeHTTP(recorder, r)
	})
}
