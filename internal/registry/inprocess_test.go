package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// A canceled request returns at once, and wait returns only after its handler has ended, also if the handler writes to
// a client that reads no more.
func TestWaitReturnsAfterTheHandlersOfCanceledRequests(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"canceled before the response": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"canceled during the response": func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<10))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := false
			transport := &inProcess{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer(w, r)
				ended = true // The race detector reports a wait that does not order this write before the read below.
			})}
			ctx, cancel := context.WithCancel(t.Context())
			context.AfterFunc(t.Context(), cancel)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			go cancel()
			if response, err := transport.RoundTrip(request); err == nil {
				<-ctx.Done() // The body is neither read nor closed.
				_ = response
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			transport.wait()
			if !ended {
				t.Error("the handler runs")
			}
		})
	}
}

// A backend that ends a response early makes the proxy in front of it end its own. The reader finds an error, not a
// shorter response.
func TestAResponseThatTheBackendEndsEarlyFails(t *testing.T) {
	const content = "content"
	backend := port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(2*len(content)))
		_, _ = io.WriteString(w, content)
	}))
	address, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &inProcess{handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }}}
	defer transport.wait()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(response.Body); string(got) != content || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the response is %q, %v", got, err)
	}
}
