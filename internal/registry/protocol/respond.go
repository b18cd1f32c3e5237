package protocol

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The error codes of the OCI distribution specification.
const (
	CodeUnauthorized    = "UNAUTHORIZED"
	CodeDenied          = "DENIED"
	CodeNameInvalid     = "NAME_INVALID"
	CodeNameUnknown     = "NAME_UNKNOWN"
	CodeUnsupported     = "UNSUPPORTED"
	CodeManifestInvalid = "MANIFEST_INVALID"
	CodeManifestUnknown = "MANIFEST_UNKNOWN"
	CodeContentMissing  = "MANIFEST_BLOB_UNKNOWN"
	CodeDigestInvalid   = "DIGEST_INVALID"
	CodeBlobUnknown     = "BLOB_UNKNOWN"
	CodeUploadInvalid   = "BLOB_UPLOAD_INVALID"
	CodeUploadUnknown   = "BLOB_UPLOAD_UNKNOWN"
	CodeSizeInvalid     = "SIZE_INVALID"
	CodeTooMany         = "TOOMANYREQUESTS"
)

// The error codes that the OCI distribution specification does not have.
const (
	// CodeDamaged is the code for a repository whose files are damaged. The registry serves all others.
	CodeDamaged = "REPOSITORY_DAMAGED"
	// CodePagination and CodeUnknown are codes of CNCF distribution.
	CodePagination = "PAGINATION_NUMBER_INVALID"
	CodeUnknown    = "UNKNOWN"
)

// WriteError writes a response with an error of the OCI distribution specification.
func WriteError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	WriteJSON(w, r, status, map[string]any{"errors": []map[string]string{{"code": code, "message": message}}})
}

// WriteJSON writes a response. The response to a HEAD has the same headers and no body.
func WriteJSON(w http.ResponseWriter, r *http.Request, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	raw = append(raw, '\n')
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(raw) // An error means that the client has disconnected.
	}
}
