package limit

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The error codes of refusals. The OCI distribution specification has the first one.
const (
	codeTooMany     = "TOOMANYREQUESTS"
	codeUnavailable = "UNAVAILABLE"
)

// retryAfter is the time in seconds after which a client that was refused can try again.
const retryAfter = 5

// Refusal is the refusal of a request because of a limit, or of a temporary fault of the server.
type Refusal struct {
	// what is the reason, and advice states what to do.
	what, advice string
	// isOwn means that the client itself holds too much.
	isOwn bool
}

// Unavailable returns the refusal of a request for a temporary fault of the server.
func Unavailable(what string) *Refusal {
	return &Refusal{what: what, advice: "try again later"}
}

// Error implements error.
func (r *Refusal) Error() string { return r.what + "; " + r.advice }

// Status returns the status of the response: 429 if the client holds too much, and 503 if all clients together do.
func (r *Refusal) Status() int {
	if r.isOwn {
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// Write writes the response to a request that is refused.
func (r *Refusal) Write(w http.ResponseWriter, request *http.Request) {
	code := codeUnavailable
	if r.isOwn {
		code = codeTooMany
	}
	raw, err := json.Marshal(map[string]any{"errors": []map[string]string{{"code": code, "message": r.Error()}}})
	if err != nil {
		raw = nil // Strings can always be encoded.
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(raw)))
	header.Set("Retry-After", strconv.Itoa(retryAfter))
	w.WriteHeader(r.Status())
	if request.Method != http.MethodHead {
		_, _ = w.Write(raw) // An error means that the client has disconnected.
	}
}
