package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve returns the response to a client with credentials.
func serve(h http.Handler, path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// addresses returns the paths of all pages.
func addresses(t testing.TB, h http.Handler) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for path := range crawl(t, h) {
		out[path] = true
	}
	return out
}
