package apply_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// reply is how a played API server answers one call.
type reply func(*http.Request) (*http.Response, error)

// fakeServer is an API server that sends the given responses in order, and repeats the
// last one. It needs no network, so it can be used with a fake clock.
type fakeServer struct {
	mu      sync.Mutex
	replies []reply
	calls   []string
}

// RoundTrip implements http.RoundTripper.
func (p *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.calls = append(p.calls, r.Method+" "+r.URL.Path)
	next := p.replies[0]
	if len(p.replies) > 1 {
		p.replies = p.replies[1:]
	}
	p.mu.Unlock()
	return next(r)
}

func play(t testing.TB, replies ...reply) (*apply.Cluster, *fakeServer) {
	t.Helper()
	p := &fakeServer{replies: replies}
	c, err := apply.NewCluster(&rest.Config{Host: "http://played.test", Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// answers returns a reply with a body.
func answers(code int, contentType, body string, headers ...string) reply {
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, err := w.WriteString(body)
		res := w.Result()
		res.Request = r
		return res, err
	}
}

// statusReply returns a reply with a Status, as an API server refuses calls.
func statusReply(code int, reason metav1.StatusReason, headers ...string) reply {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: "played",
		Details: &metav1.StatusDetails{Name: "something"},
	}
	return answers(code, "application/json", encode(status), headers...)
}

// holdsObject returns a reply with the metadata of an object.
func holdsObject(m metav1.ObjectMeta) reply {
	return answers(http.StatusOK, "application/json", encode(metav1.PartialObjectMetadata{ObjectMeta: m}))
}

// loses returns a reply that does not arrive.
func loses(err error) reply {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// many are more objects than are read one by one.
func many() []plan.Ref {
	var refs []plan.Ref
	for i := range 20 {
		refs = append(refs, definition("many"+strconv.Itoa(i)+".apply.test"))
	}
	return refs
}
