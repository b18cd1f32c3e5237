package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server responds after a time, with parts of a body between which it is silent.
type server struct{ first, between time.Duration }

func (s server) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := waitFor(req.Context(), s.first); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: &slowBody{ctx: req.Context(), between: s.between}}, nil
}

// slowBody is a body of three parts.
type slowBody struct {
	ctx     context.Context
	between time.Duration
	parts   int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.parts++; b.parts > 3 {
		return 0, io.EOF
	}
	if err := waitFor(b.ctx, b.between); err != nil {
		return 0, err
	}
	return copy(p, "part "), nil
}

func (b *slowBody) Close() error { return nil }

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// A request ends when the API server is silent for too long, before or during its response. A watch is silent while
// nothing happens.
func TestSilentServersEndRequests(t *testing.T) {
	const short, long = patience - time.Second, patience + time.Second
	for name, tc := range map[string]struct {
		server server
		query  string
		fails  bool
	}{
		"slow":                     {server{short, short}, "", false},
		"no response":              {server{long, 0}, "", true},
		"silent within a response": {server{0, long}, "", true},
		"quiet watch":              {server{short, long}, "?watch=true", false},
		"quiet log":                {server{short, long}, "?follow=true", false},
		"watch without a response": {server{long, 0}, "?watch=true", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster.test/api"+tc.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := patientTransport{tc.server}.RoundTrip(req)
			var body []byte
			if err == nil {
				body, err = io.ReadAll(resp.Body)
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if tc.fails != (err != nil) ||
				err != nil && !strings.Contains(err.Error(), "the API server has not responded for 1m10s") {
				t.Errorf("%s: got %v", name, err)
			}
			if err == nil && string(body) != "part part part " {
				t.Errorf("%s: got %q", name, body)
			}
		})
	}
}

// An interrupted request fails with the interrupt.
func TestInterruptedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.test/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := patientTransport{server{patience, 0}}.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
