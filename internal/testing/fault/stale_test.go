package fault_test

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// While reads are stale, old responses are repeated. Writes are made.
func TestStaleReads(t *testing.T) {
	url := serve(t, &server{})
	n := fault.New(fault.SingleSubject("all"))
	n.Set("all", fault.Fault{Kind: fault.Stale, Call: 2, Duration: 200 * time.Millisecond})
	rt := n.Transport(fault.Cluster, http.DefaultTransport)
	var got []string
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/a"}, {http.MethodPut, "/a"}, {http.MethodPut, "/b"}, {http.MethodGet, "/a"},
		{http.MethodGet, "/c"}, {http.MethodGet, "/c"},
	} {
		got = append(got, call(t, rt, c.method, url+c.path, ""))
	}
	want := []string{"answer 000001", "answer 000002", "answer 000003", "answer 000001", "answer 000004", "answer 000004"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wait.Until(t, 10*time.Second, "reads are fresh again", func() (string, bool) {
		got := call(t, rt, http.MethodGet, url+"/a", "")
		return got, got != "answer 000001"
	})
}

// A watch delivers the events of a stale subject late and in order, and other events at once.
func TestWatchDelaysEventsOfStaleSubjects(t *testing.T) {
	events := make(chan string)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for {
			w.(http.Flusher).Flush()
			select {
			case e, ok := <-events:
				if !ok {
					return
				}
				fmt.Fprintln(w, e)
			case <-r.Context().Done():
				return
			}
		}
	}))
	n := fault.New(fault.SubjectsByName(regexp.MustCompile(`\bp[0-9]+\b`)))
	// The end of the watch releases delayed events, however long the reads would be stale.
	n.Set("p1", fault.Fault{Kind: fault.Stale, Duration: time.Hour})
	rt := n.Transport(fault.Cluster, http.DefaultTransport)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	call(t, rt, http.MethodPut, url+"/p1", "") // strikes
	go func() {
		defer close(events)
		for _, e := range []string{"p1 a", "p2 a", "p1 b", "bookmark", "p2 b"} {
			events <- e
		}
	}()
	lines := bufio.NewScanner(res.Body)
	var got []string
	for range 2 {
		lines.Scan()
		got = append(got, lines.Text())
	}
	if diff := cmp.Diff([]string{"p2 a", "p2 b"}, got); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	for lines.Scan() {
		got = append(got, lines.Text())
	}
	if diff := cmp.Diff([]string{"p1 a", "p1 b", "bookmark"}, got[2:]); diff != "" {
		t.Errorf("late (-want +got):\n%s", diff)
	}
}

// A network with stale reads is not idle, and a fault that was disarmed is not injected.
func TestIdleAndDisarm(t *testing.T) {
	url := serve(t, &server{})
	n := fault.New(fault.SingleSubject("all"))
	rt := n.Transport(fault.Cluster, http.DefaultTransport)
	stale := fault.Fault{Kind: fault.Stale, Duration: time.Hour}
	n.Set("all", stale)
	n.Disarm("all")
	call(t, rt, http.MethodGet, url+"/a", "")
	if _, injected := n.Injected("all"); injected {
		t.Error("a disarmed fault was injected")
	}
	wait.Until(t, 10*time.Second, "the network is idle", func() (string, bool) { return "", n.Idle() > time.Millisecond })
	n.Set("all", stale)
	call(t, rt, http.MethodGet, url+"/a", "")
	wait.Until(t, 10*time.Second, "the subject is stale", func() (
		string, bool,
	) {
		_, injected := n.Injected("all")
		return "", injected
	})
	if d := n.Idle(); d != 0 {
		t.Errorf("idle for %s while reads are stale", d)
	}
}
