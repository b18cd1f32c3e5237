package registry

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// codeDamaged is the error code for a damaged repository. The OCI distribution specification has none.
const codeDamaged = "REPOSITORY_DAMAGED"

// The error codes of the OCI distribution specification that this package uses.
const (
	codeUnauthorized = "UNAUTHORIZED"
	codeDenied       = "DENIED"
	codeNameInvalid  = "NAME_INVALID"
	codeNameUnknown  = "NAME_UNKNOWN"
	codeUnsupported  = "UNSUPPORTED"
	codeManifest     = "MANIFEST_INVALID"
	codeTooMany      = "TOOMANYREQUESTS"
)

// writeError writes a response with an error of the OCI distribution specification.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	writeJSON(w, r, status, map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
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
