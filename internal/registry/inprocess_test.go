package registry

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// A canceled request returns at once, and wait returns only after its handler has ended, also if the handler writes to a client that reads
// no more.
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
