// Package inprocess sends the requests of a client to a handler, without a connection.
package inprocess

import (
	"net/http"
	"net/http/httptest"
)

// Transport sends requests to a handler, and returns its complete response.
type Transport struct{ Handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	t.Handler.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
