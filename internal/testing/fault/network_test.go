package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
)

// server counts the requests that arrive, and responds with their number.
type server struct {
	mu      sync.Mutex
	arrived []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "answer %06d", len(s.arrived))
}

func (s *server) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.arrived...)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// call returns the response to a call as "code body", or its error.
func call(t *testing.T, rt http.RoundTripper, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		return "error: " + err.Error()
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Sprintf("%d %s error: %v", res.StatusCode, got, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d retry %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	return string(got)
}

// Each kind of fault has its documented effect on the second of four calls, and on no other.
func TestKinds(t *testing.T) {
	const (
		killed  = "error: the process was killed"
		first   = "answer 000001"
		missing = "error: read tcp: "
	)
	four := []string{"PUT /0", "PUT /1", "PUT /2", "PUT /3"}
	passed := []string{"PUT /0", "PUT /2", "PUT /3"}
	tests := []struct {
		kind    fault.Kind
		answers []string
		arrived []string
	}{
		{fault.None, []string{first, "answer 000002", "answer 000003", "answer 000004"}, four},
		{fault.KilledBefore, []string{first, killed, killed, killed}, four[:1]},
		{fault.KilledAfter, []string{first, killed, killed, killed}, four[:2]},
		{fault.Conflict, []string{first, `409 retry ""`, "answer 000002", "answer 000003"}, passed},
		{fault.Throttled, []string{first, `429 retry "1"`, "answer 000002", "answer 000003"}, passed},
		{fault.ServerError, []string{first, `500 retry ""`, "answer 000002", "answer 000003"}, passed},
		{fault.LostAnswer, []string{first, missing + "i/o timeout", "answer 000003", "answer 000004"}, four},
		{fault.Reset, []string{first, missing + "connection reset by peer", "answer 000002", "answer 000003"}, passed},
	}
	for _, tt := range tests {
		t.Run(tt.kind.String(), func(t *testing.T) {
			s := &server{}
			url := serve(t, s)
			n := fault.New(fault.SingleSubject("all"))
			rt := n.Transport(fault.Cluster, http.DefaultTransport)
			n.Set("all", fault.Fault{Kind: tt.kind, Call: 1})
			var answers []string
			for i := range 4 {
				answers = append(answers, call(t, rt, http.MethodPut, fmt.Sprintf("%s/%d", url, i), "x"))
			}
			if diff := cmp.Diff(tt.answers, answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.arrived, s.calls()); diff != "" {
				t.Errorf("arrived calls (-want +got):\n%s", diff)
			}
			if c, ok := n.Injected("all"); ok != (tt.kind != fault.None) || ok && c.String() != "PUT /1" {
				t.Errorf("injected at %v (%v)", c, ok)
			}
			n.Clear()
			if got := call(t, rt, http.MethodGet, url, ""); !strings.HasPrefix(got, "answer") {
				t.Errorf("after Clear: %s", got)
			}
		})
	}
}

func TestBodies(t *testing.T) {
	for kind, want := range map[fault.Kind]string{
		fault.Truncated:  "200 answer error: unexpected EOF",
		fault.WrongBytes: "answer!000002",
	} {
		t.Run(kind.String(), func(t *testing.T) {
			url := serve(t, &server{})
			n := fault.New(fault.SingleSubject("all"))
			rt := n.Transport(fault.Registry, http.DefaultTransport)
			n.Set("all", fault.Fault{Kind: kind})
			if got := call(t, rt, http.MethodPut, url, ""); got != "answer 000001" {
				t.Errorf("a write got the fault: %s", got)
			}
			if got := call(t, rt, http.MethodGet, url, ""); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := call(t, rt, http.MethodGet, url, ""); got != "answer 000003" {
				t.Errorf("the call after the fault: %q", got)
			}
		})
	}
}

// A hanging call ends when its caller cancels it.
func TestHangAndStall(t *testing.T) {
	for kind, arrives := range map[fault.Kind]int{fault.Hang: 0, fault.Stall: 1} {
		t.Run(kind.String(), func(t *testing.T) {
			s := &server{}
			n := fault.New(fault.SingleSubject("all"))
			n.Set("all", fault.Fault{Kind: kind})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, serve(t, s), nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := n.Transport(fault.Registry, http.DefaultTransport).RoundTrip(r)
			if err == nil {
				_, err = io.ReadAll(res.Body)
				_ = res.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if got := s.calls(); len(got) != arrives {
				t.Errorf("arrived: %v", got)
			}
		})
	}
}

func TestMeanwhileRunsBeforeTheCall(t *testing.T) {
	s := &server{}
	url := serve(t, s)
	n := fault.New(fault.SingleSubject("all"))
	n.Set("all", fault.Fault{
		Kind: fault.Meanwhile, Call: 1, Do: func() { call(t, http.DefaultTransport, http.MethodDelete, url+"/other", "") },
	})
	rt := n.Transport(fault.Cluster, http.DefaultTransport)
	for _, path := range []string{"/0", "/1"} {
		call(t, rt, http.MethodPut, url+path, "")
	}
	if diff := cmp.Diff([]string{"PUT /0", "DELETE /other", "PUT /1"}, s.calls()); diff != "" {
		t.Error(diff)
	}
}

// Polls, events and leases do not count, and a watch counts once.
func TestRequirementsThatCount(t *testing.T) {
	url := serve(t, &server{})
	n := fault.New(fault.SingleSubject("all"))
	n.Set("all", fault.Fault{})
	rt := n.Transport(fault.Cluster, http.DefaultTransport)
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/a?watch=true"}, {http.MethodGet, "/b"}, {http.MethodGet, "/b"}, {http.MethodGet, "/a?watch=true"},
		{http.MethodPost, "/b"}, {http.MethodPost, "/b"}, {http.MethodPost, "/namespaces/default/events"},
		{http.MethodPut, "/namespaces/default/leases/l"}, {http.MethodGet, "/b"},
	} {
		call(t, rt, c.method, url+c.path, "")
	}
	var got []string
	for _, c := range n.Calls("all") {
		got = append(got, c.String())
	}
	if diff := cmp.Diff([]string{"WATCH /a", "GET /b", "POST /b", "POST /b", "GET /b"}, got); diff != "" {
		t.Error(diff)
	}
}

// A fault for one side does not affect the other side.
func TestFaultAppliesToOneSide(t *testing.T) {
	url := serve(t, &server{})
	n := fault.New(fault.SingleSubject("all"))
	n.Set("all", fault.Fault{Kind: fault.ServerError, Side: fault.Registry})
	if got := call(t, n.Transport(fault.Cluster, http.DefaultTransport), http.MethodGet, url, ""); got != "answer 000001" {
		t.Errorf("cluster: %s", got)
	}
	if got := call(t, n.Transport(fault.Registry, http.DefaultTransport), http.MethodGet, url, ""); got != `500 retry ""` {
		t.Errorf("registry: %s", got)
	}
}

func TestEachSubjectHasItsOwnFault(t *testing.T) {
	s := &server{}
	url := serve(t, s)
	n := fault.New(fault.SubjectsByName(regexp.MustCompile(`\bp[0-9]+\b`), "/shared"))
	n.Set("p1", fault.Fault{Kind: fault.KilledBefore, Call: 1})
	n.Set("p2", fault.Fault{Kind: fault.KilledBefore, Call: 0})
	rt := n.Transport(fault.Cluster, http.DefaultTransport)
	for _, c := range []struct{ path, body string }{
		{"/p1", ""}, {"/", `{"name":"p2-abc"}`}, {"/x", `{"name":"p1"}`}, {"/shared", "p1"}, {"/p3?x=p1", ""}, {"/?x=p1", ""},
	} {
		call(t, rt, http.MethodPost, url+c.path, c.body)
	}
	if diff := cmp.Diff([]string{"POST /p1", "POST /shared", "POST /p3"}, s.calls()); diff != "" {
		t.Error(diff)
	}
}
