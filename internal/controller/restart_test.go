package controller_test

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller"
)

// restartRequests bounds the requests of a manager until it is ready and has read its CA, without
// watches and without those of leader election.
const restartRequests = 11

// reviewSelf is the request with which the manager reads its name. It writes nothing.
const reviewSelf = http.MethodPost + " /apis/authentication.k8s.io/v1/selfsubjectreviews"

// listSecrets is the request with which the manager reads its CA.
const listSecrets = http.MethodGet + " /api/v1/namespaces/" + controller.DefaultNamespace + "/secrets"

// A manager that finds nothing to change becomes ready after a few requests, none of which is a write.
func TestRestartNeedsFewRequests(t *testing.T) {
	s := withExternalRuntimes(t)
	stop := s.start(t)
	lock := &v1beta1.Lock{}
	eventually(t, "the Lock has no packages", func() bool {
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock)
		return err == nil && len(lock.Packages) == 0 && len(lock.Status.Conditions) == 0
	})
	ca := certificates.Store{Client: s.Client, Namespace: controller.DefaultNamespace, Now: time.Now, Random: rand.Reader}
	if _, _, err := ca.Ensure(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	stop()
	var sent requestLog
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(sent.record)
	stop = s.start(t)
	eventually(t, "the manager has read its CA", func() bool { return slices.Contains(sent.all(), listSecrets) })
	stop()
	if all := sent.all(); len(all) == 0 || len(all) > restartRequests {
		t.Errorf("%d requests, want at most %d:\n%s", len(all), restartRequests, strings.Join(all, "\n"))
	}
	for _, r := range sent.all() {
		if !strings.HasPrefix(r, http.MethodGet+" ") && r != reviewSelf {
			t.Errorf("the manager has written: %s", r)
		}
	}
}

// requestLog is the list of the requests of a client, without watches. It is safe for concurrent use.
type requestLog struct {
	mu       sync.Mutex
	requests []string
}

// record returns a transport that lists the requests before it sends them.
func (l *requestLog) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if query := r.URL.Query(); query.Get("watch") == "" {
			l.mu.Lock()
			l.requests = append(l.requests, r.Method+" "+r.URL.RequestURI())
			l.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (l *requestLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

func (l *requestLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// roundTripper is a function that sends a request.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
