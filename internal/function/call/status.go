package call

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

const (
	statusHeader  = "Grpc-Status"
	messageHeader = "Grpc-Message"

	codeUnimplemented = 12
	codeInternal      = 13
)

// statusName returns the name of a code of gRPC.
func statusName(code int) string {
	names := []string{
		"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted",
		"FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss",
		"Unauthenticated",
	}
	if code < 0 || code >= len(names) {
		return fmt.Sprintf("code %d", code)
	}
	return names[code]
}

// statusError is the status of a call that a function did not accept.
type statusError struct {
	code    int
	message string
}

// Error returns the name of the code, and the message.
func (e *statusError) Error() string {
	if e.message == "" {
		return statusName(e.code)
	}
	return statusName(e.code) + ": " + e.message
}

// statusOf returns the error in the trailer of a response, or nil.
func statusOf(trailer http.Header) error {
	text := trailer.Get(statusHeader)
	code, err := strconv.Atoi(text)
	if err != nil {
		return &statusError{code: codeInternal, message: "the response has no status"}
	}
	if code == 0 {
		return nil
	}
	message := trailer.Get(messageHeader)
	if plain, err := url.PathUnescape(message); err == nil {
		message = plain
	}
	return &statusError{code: code, message: message[:min(len(message), maxMessageText)]}
}
