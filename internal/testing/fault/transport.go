package fault

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// ErrKilled is the error of all calls of a killed process.
var ErrKilled = errors.New("the process was killed")

// The errors of connections.
var (
	errNoAnswer = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	errReset    = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// transport is the transport of a network to one side.
type transport struct {
	network *Network
	side    Side
	next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	c, name := callOf(t.side, r), t.network.attribution.Of(r, body)
	s, kind := (*subject)(nil), None
	if name != "" {
		s, kind = t.network.step(name, c)
	}
	switch kind {
	case KilledBefore:
		return nil, ErrKilled
	case KilledAfter:
		return nil, t.lose(r, ErrKilled)
	case LostAnswer:
		return nil, t.lose(r, errNoAnswer)
	case Reset:
		return nil, errReset
	case Hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case Conflict, Throttled, ServerError:
		return refusal(r, kind), nil
	case Meanwhile:
		s.fault.Do()
	}
	res, err := t.pass(r, c, name, s)
	if err != nil {
		return nil, err
	}
	return res, spoil(r, res, kind)
}

// lose makes a call, discards the response, and returns the error instead. It does not read the
// body: when a response begins, the call was made, and the response to a watch has no end.
func (t *transport) lose(r *http.Request, instead error) error {
	if res, err := t.next.RoundTrip(r); err == nil {
		_ = res.Body.Close()
	}
	return instead
}

// pass forwards a call. It delays the events of watches and repeats old responses to reads while
// reads are stale.
func (t *transport) pass(r *http.Request, c Call, name string, s *subject) (*http.Response, error) {
	switch {
	case t.side == Cluster && c.Method == watch:
		res, err := t.next.RoundTrip(r)
		if err == nil {
			t.network.holdBack(res)
		}
		return res, err
	case t.side == Cluster && s != nil && c.read() && s.fault.Kind == Stale:
		return t.network.remember(t.next, r, name, s)
	}
	return t.next.RoundTrip(r)
}

// bodyOf reads the body of a request and leaves it to be read again.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
