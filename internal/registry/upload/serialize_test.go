package upload_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/upload"
)

// TestARequestThatEndsWhileItWaitsIsNotAcknowledged ends a push while another one changes the repository.
func TestARequestThatEndsWhileItWaitsIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	started, finish, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	handler := upload.Serialize(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(started)
		<-finish
	}))
	request := func(ctx context.Context) *http.Request {
		return httptest.NewRequestWithContext(ctx, http.MethodPut, "/v2/acme/boats/manifests/v1.0.0", nil)
	}
	go func() {
		defer close(finished)
		handler.ServeHTTP(httptest.NewRecorder(), request(t.Context()))
	}()
	<-started
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // As package http compares it.
			t.Errorf("the request ends with %v, which package http would make a response with 200", cause)
		}
		close(finish)
		<-finished
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	handler.ServeHTTP(httptest.NewRecorder(), request(ctx))
}
