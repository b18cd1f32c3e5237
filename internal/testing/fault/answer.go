package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal returns the response of an API server that rejects a request. Registries use the
// same status codes, and their clients do not read the message.
func refusal(r *http.Request, k Kind) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: "fault of the test: " + k.String(),
	}
	header := http.Header{"Content-Type": {"application/json"}}
	switch k {
	case Throttled:
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		header.Set("Retry-After", "1")
	case ServerError:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	case Conflict:
		status.Code, status.Reason = http.StatusConflict, metav1.StatusReasonConflict
		if r.Method == http.MethodPost {
			status.Reason = metav1.StatusReasonAlreadyExists
		}
	}
	body, _ := json.Marshal(status) // A Status always marshals.
	a := &answer{status: int(status.Code), header: header, body: body}
	return a.response(r)
}

// answer is a complete response that can be repeated.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// readAnswer reads a response to its end.
func readAnswer(res *http.Response) (*answer, error) {
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return &answer{status: res.StatusCode, header: res.Header, body: body}, err
}

func (a *answer) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}
}

// spoil changes the body of a response for the faults Truncated, WrongBytes and Stall.
func spoil(r *http.Request, res *http.Response, k Kind) error {
	if k != Truncated && k != WrongBytes && k != Stall {
		return nil
	}
	a, err := readAnswer(res)
	if err != nil {
		return err
	}
	half := len(a.body) / 2
	switch {
	case k == Truncated:
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(a.body[:half]), broken{}))
	case k == Stall:
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(a.body[:half]), silent{r.Context()}))
	case len(a.body) > 0:
		a.body[half] ^= 1
		res.Body = io.NopCloser(bytes.NewReader(a.body))
	}
	return nil
}

// broken is the rest of a body after a broken connection. Its reads fail.
type broken struct{}

// Read implements [io.Reader].
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// silent blocks its reader until the request is canceled.
type silent struct {
	ctx context.Context // A body is read in the context of its request.
}

// Read implements [io.Reader].
func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
