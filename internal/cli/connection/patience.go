package connection

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// patience is the time for which an API server may be silent during a request. It gives up itself after a minute.
const patience = 70 * time.Second

// patientTransport fails requests to an API server that accepts connections and stays silent. A watch, and a log that
// is followed, may be silent for as long as nothing happens, once the API server has responded.
type patientTransport struct{ http.RoundTripper }

// WrappedRoundTripper returns the transport that sends the requests.
func (t patientTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t patientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	s := &silence{cancel: cancel}
	s.timer = time.AfterFunc(patience, s.end)
	resp, err := t.RoundTripper.RoundTrip(req.WithContext(ctx))
	if err != nil {
		defer cancel()
		s.timer.Stop()
		return nil, s.explain(err)
	}
	query := req.URL.Query()
	if resp.StatusCode == http.StatusSwitchingProtocols || query.Get("watch") != "" || query.Get("follow") != "" {
		s.timer.Stop()
		return resp, nil
	}
	s.timer.Reset(patience)
	resp.Body = &patientBody{resp.Body, s}
	return resp, nil
}

// silence cancels a request when its server has been silent for too long.
type silence struct {
	timer  *time.Timer
	cancel context.CancelFunc
	ended  atomic.Bool
}

func (s *silence) end() {
	s.ended.Store(true)
	s.cancel()
}

// explain returns the error of a request.
func (s *silence) explain(err error) error {
	if err == nil || !s.ended.Load() {
		return err
	}
	return fmt.Errorf("the API server has not responded for %s", patience)
}

// patientBody is the body of a response. Its reads fail when the server is silent for too long.
type patientBody struct {
	io.ReadCloser
	silence *silence
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && err == nil {
		b.silence.timer.Reset(patience)
	}
	if err == io.EOF {
		return n, err
	}
	return n, b.silence.explain(err)
}

// Close implements io.Closer.
func (b *patientBody) Close() error {
	b.silence.timer.Stop()
	defer b.silence.cancel()
	return b.ReadCloser.Close()
}
