package registry

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestARequestThatEndsEarlyIsNotAcknowledged ends requests while the backend processes them. A connection can still be
// open then.
func TestARequestThatEndsEarlyIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, err := openBackend(BackendOptions{Host: "registry.invalid", PlainHTTP: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.close() })
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/v2/acme/boats/manifests/v1.0.0", nil))
		if w.Code < http.StatusInternalServerError {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}
