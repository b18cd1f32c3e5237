package limit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// deadlines records the deadlines of a connection.
type deadlines struct {
	http.ResponseWriter
	reads []time.Time
}

// SetReadDeadline implements the interface of [http.ResponseController].
func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.reads = append(d.reads, t)
	return nil
}

// TestDeadlinesOfABody removes the deadline at the end of a body, because package http would cancel the request, and
// never extends that of a body with a limit.
func TestDeadlinesOfABody(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"without a limit": 0, "with a limit": time.Nanosecond} {
		recorded := &deadlines{ResponseWriter: httptest.NewRecorder()}
		handler := Transfers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if limit > 0 {
				Body(r, limit)
			}
			_, _ = io.ReadAll(r.Body)
		}))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", iotest.OneByteReader(strings.NewReader("abc")))
		handler.ServeHTTP(recorded, r)
		reads := recorded.reads
		if len(reads) < 4 || !reads[len(reads)-1].IsZero() {
			t.Fatalf("%s: the deadlines are %v", name, reads)
		}
		if isExtended := reads[1].After(reads[0]); isExtended != (limit == 0) {
			t.Errorf("%s: the deadlines are %v", name, reads)
		}
	}
}
