package apply_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// operations are one call of each sort.
var operations = map[string]func(*testing.T, *apply.Cluster) error{
	"POST": writes(plan.Change{Action: plan.Create, Ref: definition("a.apply.test")}),
	"PUT":  writes(plan.Change{Action: plan.Update, Ref: definition("a.apply.test"), UID: "u", ResourceVersion: "1"}),
	"PATCH": writes(plan.Change{
		Action: plan.Own, Ref: definition("a.apply.test"), MetadataOnly: true, UID: "u", ResourceVersion: "1",
	}),
	"GET": func(t *testing.T, c *apply.Cluster) error {
		_, err := c.Metadata(t.Context(), []plan.Ref{definition("a.apply.test")})
		return err
	},
	"LIST": func(t *testing.T, c *apply.Cluster) error {
		_, err := c.Metadata(t.Context(), many())
		return err
	},
	"discovery": func(t *testing.T, c *apply.Cluster) error {
		_, err := c.Served(t.Context(), 0)
		return err
	},
	"why not": func(t *testing.T, c *apply.Cluster) error {
		_, err := c.WhyNotEstablished(t.Context(), "a.apply.test")
		return err
	},
	"wake": func(t *testing.T, c *apply.Cluster) error { return c.Wake(t.Context(), "a.apply.test") },
}

func writes(ch plan.Change) func(*testing.T, *apply.Cluster) error {
	return func(t *testing.T, c *apply.Cluster) error {
		_, err := c.Run(t.Context(), plan.Plan{Changes: []plan.Change{ch}}, always([]byte(`{"spec":{}}`)))
		return err
	}
}

// Every answer to every sort of call ends in a failure of a documented code, after
// a bounded number of attempts.
//
// hardening: J7
func TestEveryAnswerIsClassified(t *testing.T) {
	isGone := map[string]errcode.Code{"GET": {}} // What does not exist is no failure of a read.
	tests := map[string]struct {
		reply reply
		want  errcode.Code
		// except are the operations for which it is another code.
		except map[string]errcode.Code
		calls  int
	}{
		"bad request":            {statusReply(400, metav1.StatusReasonBadRequest), apply.ErrRejected, nil, 1},
		"unauthorized":           {statusReply(401, metav1.StatusReasonUnauthorized), apply.ErrForbidden, nil, 1},
		"forbidden":              {statusReply(403, metav1.StatusReasonForbidden), apply.ErrForbidden, nil, 1},
		"no such object":         {statusReply(404, metav1.StatusReasonNotFound), apply.ErrMoved, isGone, 1},
		"no such kind":           {answers(404, "text/plain", "404 page not found"), apply.ErrKindNotServed, nil, 1},
		"method not allowed":     {statusReply(405, metav1.StatusReasonMethodNotAllowed), apply.ErrServer, nil, 1},
		"already exists":         {statusReply(409, metav1.StatusReasonAlreadyExists), apply.ErrMoved, nil, 1},
		"conflict":               {statusReply(409, metav1.StatusReasonConflict), apply.ErrMoved, nil, 1},
		"conflict in plain text": {answers(409, "text/plain", "conflict"), apply.ErrMoved, nil, 1},
		"expired":                {statusReply(410, metav1.StatusReasonExpired), apply.ErrServer, nil, 1},
		"too large":              {statusReply(413, metav1.StatusReasonRequestEntityTooLarge), apply.ErrRejected, nil, 1},
		"unsupported media type": {statusReply(415, metav1.StatusReasonUnsupportedMediaType), apply.ErrServer, nil, 1},
		"invalid":                {statusReply(422, metav1.StatusReasonInvalid), apply.ErrRejected, nil, 1},
		"throttled": {
			statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", "1"), apply.ErrServer, nil, 6,
		},
		"throttled in text": {
			answers(429, "text/plain", "too many requests", "Retry-After", "1"), apply.ErrServer, nil, 6,
		},
		"throttled, no time": {statusReply(429, metav1.StatusReasonTooManyRequests), apply.ErrServer, nil, 6},
		"throttled for an hour": {
			statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", "3600"), apply.ErrServer, nil, 1,
		},
		"internal error": {statusReply(500, metav1.StatusReasonInternalError), apply.ErrServer, nil, 1},
		"internal error, later": {
			statusReply(500, metav1.StatusReasonServerTimeout, "Retry-After", "1"), apply.ErrServer, nil, 6,
		},
		"database too small": {internalError("etcdserver: request is too large"), apply.ErrRejected, nil, 1},
		"message too large": {internalError(
			"rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097976 vs. 2097152)",
		), apply.ErrRejected, nil, 1},
		"database full":         {internalError("etcdserver: mvcc: database space exceeded"), apply.ErrServer, nil, 1},
		"unavailable":           {statusReply(503, metav1.StatusReasonServiceUnavailable), apply.ErrServer, nil, 1},
		"unavailable, later":    {answers(503, "text/html", "<html>", "Retry-After", "2"), apply.ErrServer, nil, 6},
		"timeout of the server": {statusReply(504, metav1.StatusReasonTimeout), apply.ErrServer, nil, 1},
		"reset":                 {loses(errors.New("connection reset by peer")), apply.ErrServer, nil, 3},
		"truncated":             {truncated, apply.ErrServer, nil, 3},
		"not JSON":              {answers(200, "application/json", "<html>"), apply.ErrServer, nil, 1},
	}
	for name, tc := range tests {
		for operation, do := range operations {
			t.Run(name+"/"+operation, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, server := play(t, tc.reply)
					want, calls := tc.want, tc.calls
					if other, ok := tc.except[operation]; ok {
						want = other
					}
					if name == "expired" && operation == "LIST" {
						calls = 3 // A list begins anew.
					}
					err := do(t, c)
					if want.Name == "" && err != nil || want.Name != "" && !errors.Is(err, want) {
						t.Errorf("got %v, want %s", err, want.Name)
					}
					if len(server.calls) != calls {
						t.Errorf("%d calls, want %d", len(server.calls), calls)
					}
				})
			})
		}
	}
}

// truncated returns an answer that ends too early.
func truncated(r *http.Request) (*http.Response, error) {
	res, err := answers(200, "application/json", "")(r)
	res.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"metadata":`), broken{}))
	return res, err
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A throttled call is repeated after the time in Retry-After and not earlier.
func TestThrottledCallsAreMadeAgain(t *testing.T) {
	served := map[string]reply{
		"POST": holdsObject(metav1.ObjectMeta{UID: "u"}), "PUT": holdsObject(metav1.ObjectMeta{UID: "u"}),
		"PATCH": holdsObject(metav1.ObjectMeta{UID: "u"}),
		"GET":   holdsObject(metav1.ObjectMeta{UID: "u"}), "LIST": answers(200, "application/json", "{}"),
		"discovery": answers(200, "application/json", "{}"),
	}
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	tests := map[string]struct {
		replies func() []reply
		waits   time.Duration
	}{
		"429 with seconds": {func() []reply {
			return []reply{statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", "3")}
		}, 3 * time.Second},
		"429 with a date": {func() []reply {
			return []reply{statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", in(20*time.Second))}
		}, 20 * time.Second},
		"429 without a time": {
			func() []reply { return []reply{statusReply(429, metav1.StatusReasonTooManyRequests)} }, time.Second,
		},
		"503": {func() []reply { return []reply{answers(503, "text/plain", "", "Retry-After", "2")} }, 2 * time.Second},
		"four times": {func() []reply {
			again := statusReply(429, metav1.StatusReasonTooManyRequests, "Retry-After", "2")
			return []reply{again, again, again, again}
		}, 8 * time.Second},
		"a lost answer": {func() []reply { return []reply{loses(io.ErrUnexpectedEOF)} }, 200 * time.Millisecond},
	}
	for name, tc := range tests {
		for operation, last := range served {
			t.Run(name+"/"+operation, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began, replies := time.Now(), tc.replies()
					c, server := play(t, append(replies, last)...)
					if err := operations[operation](t, c); err != nil {
						t.Fatal(err)
					}
					if waited := time.Since(began); waited != tc.waits {
						t.Errorf("waited %s, want %s", waited, tc.waits)
					}
					if want := len(replies) + 1; len(server.calls) != want {
						t.Errorf("%d calls, want %d", len(server.calls), want)
					}
				})
			})
		}
	}
}

// internalError returns an answer with a failure of the database of the API server.
func internalError(message string) reply {
	return answers(http.StatusInternalServerError, "application/json", encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: message,
	}))
}
