package registry

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
)

// TestPanicIsAResponse responds to a request whose handler panics, and logs the cause.
func TestPanicIsAResponse(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	handler := recovering(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no tags") }),
		slog.New(slog.NewTextHandler(&log, nil)),
	)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/acme/boats/tags/list", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), protocol.CodeUnknown) ||
		!strings.Contains(log.String(), "no tags") {
		t.Errorf("%d %s\n%s", w.Code, w.Body, &log)
	}
}

// TestPanicOfAnIncompleteResponse ends the connection, so that the client does not use the response.
func TestPanicOfAnIncompleteResponse(t *testing.T) {
	t.Parallel()
	handler := recovering(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		panic("the content ended")
	}), slog.New(slog.DiscardHandler))
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // As package http compares it.
			t.Errorf("the panic is %v", cause)
		}
	}()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
}

// TestPanicInProcess makes the panic of a handler of this process an error of its client.
func TestPanicInProcess(t *testing.T) {
	t.Parallel()
	for name, started := range map[string]bool{"before the response": false, "in the response": true} {
		requests := &inProcess{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if started {
				w.WriteHeader(http.StatusOK)
			}
			panic(http.ErrAbortHandler)
		})}
		resp, err := requests.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err == nil || started != (resp.StatusCode == http.StatusOK) {
			t.Errorf("%s: %d, %v", name, resp.StatusCode, err)
		}
		_ = resp.Body.Close()
		requests.wait()
	}
}
