package registry_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	testcluster "github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// inCluster returns the access of servers to a namespace of their own.
func inCluster(t testing.TB) *cluster.Config {
	t.Helper()
	c := &cluster.Config{REST: testcluster.Start(t)}
	namespace, err := clientsOf(t, c).CoreV1().Namespaces().Create(
		t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "registry-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Namespace = namespace.Name
	return c
}

// wrapped returns the access with another transport.
func wrapped(c *cluster.Config, wrap func(http.RoundTripper) http.RoundTripper) *cluster.Config {
	config := rest.CopyConfig(c.REST)
	config.Wrap(wrap)
	return &cluster.Config{REST: config, Namespace: c.Namespace}
}

func clientsOf(t testing.TB, c *cluster.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.REST)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// claimsIn returns the claims of a repository.
func claimsIn(t testing.TB, c *cluster.Config, repository string) []coordinationv1.Lease {
	t.Helper()
	leases, err := clientsOf(t, c).CoordinationV1().Leases(c.Namespace).
		List(t.Context(), metav1.ListOptions{LabelSelector: cluster.LabelClaim})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(leases.Items, func(l coordinationv1.Lease) bool {
		return l.Annotations[cluster.AnnotationRepository] != repository
	})
}

// life is the number of requests that a server makes before it fails.
type life struct {
	left atomic.Int64
	// answered means that the last request arrives, and only its response does not.
	answered bool
}

// immortal lets a server make any number of requests.
func (l *life) immortal() { l.left.Store(math.MaxInt64) }

// limited returns a transport that fails at the end of a life.
func (l *life) limited(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		left := l.left.Add(-1)
		if left > 0 || left == 0 && l.answered {
			resp, err := next.RoundTrip(r)
			if left > 0 || err != nil {
				return resp, err
			}
			_ = resp.Body.Close()
		}
		return nil, errLost
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// mortal is a server of a cluster that can fail.
type mortal struct {
	*server
	life *life
}

// startMortals starts servers of one cluster in front of docker-registry.
func startMortals(t *testing.T, n int) (servers []mortal, address string, in *cluster.Config) {
	t.Helper()
	address, in = dockerregistry.Start(t), inCluster(t)
	for range n {
		l := &life{}
		l.immortal()
		s := start(t, func(o *registry.Options) {
			o.Indexer = noIndexer{}
			o.Backend = &registry.BackendOptions{
				Host: address, PlainHTTP: true, Transport: l.limited(http.DefaultTransport), Cluster: wrapped(in, l.limited),
			}
		})
		servers = append(servers, mortal{s, l})
	}
	return servers, address, in
}

// pushAtOnce pushes a content of its own through each server at the same moment, and returns the statuses. It repeats a
// push that a server could not serve, as clients do: docker-registry fails to read a tag that is being written.
func pushAtOnce(t *testing.T, servers []mortal, target func(i int) (repository, tag string)) []int {
	t.Helper()
	statuses := make([]int, len(servers))
	var pushes sync.WaitGroup
	for i, s := range servers {
		pushes.Go(func() {
			repository, tag := target(i)
			for range 20 {
				var body string
				statuses[i], body = s.tryPush(t.Context(), repository, tag, fmt.Sprint("content ", i))
				if statuses[i] != http.StatusServiceUnavailable || s.life.left.Load() <= 0 || strings.Contains(body, "push again") {
					return
				}
				t.Logf("push %d to %s: %s", i, repository, body)
			}
		})
	}
	pushes.Wait()
	return statuses
}

// checkOneContent checks that all servers have the content of the push that was accepted, and that no other one
// was. A push is settled by the next one of another content, which every server refuses.
func checkOneContent(t *testing.T, servers []mortal, repository, tag string, statuses []int, mayFail bool) {
	t.Helper()
	for _, s := range servers {
		status := s.pushManifest(t.Context(), repository, tag, "late content")
		if status != http.StatusConflict && (status != http.StatusCreated || !mayFail) {
			t.Fatalf("a later push of other content to %s: status %d, after %v", repository, status, statuses)
		}
	}
	var published string
	for _, s := range servers {
		resp := s.do(t, http.MethodGet, "/v2/"+repository+"/manifests/"+tag, s.admin, nil)
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || published != "" && published != string(body) {
			t.Fatalf("the servers have %q and %d %q, %v", published, resp.StatusCode, body, err)
		}
		published = string(body)
	}
	if published == string(manifestOf("late content")) && slices.Contains(statuses, http.StatusConflict) {
		t.Fatalf("a push to %s was refused, and no other content was published: %v", repository, statuses)
	}
	for i, status := range statuses {
		isOwn := published == string(manifestOf(fmt.Sprint("content ", i)))
		switch {
		case status == http.StatusCreated && isOwn, status == http.StatusConflict && !isOwn:
		case mayFail && status >= http.StatusInternalServerError:
		default:
			t.Fatalf("push %d to %s: status %d of %v, and the registry has %s", i, repository, status, statuses, published)
		}
	}
}

// TestOneContentOfAVersionWinsInEveryServer pushes several contents of one version at the same moment through
// servers in front of docker-registry, with a real API server. Every second round creates the repository.
func TestOneContentOfAVersionWinsInEveryServer(t *testing.T) {
	rounds := 30
	if lane.IsFull() {
		rounds = 1000
	}
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n, " servers"), func(t *testing.T) {
			servers, _, in := startMortals(t, n)
			for round := range rounds {
				repository, tag := fmt.Sprintf("acme/boats%d", round/2), fmt.Sprintf("v1.%d.0", round%2)
				spellings := []string{tag, strings.TrimPrefix(tag, "v"), tag}
				statuses := pushAtOnce(t, servers, func(i int) (string, string) { return repository, spellings[i] })
				var published []string
				for _, spelling := range spellings[:2] {
					if resp := servers[0].do(t, http.MethodHead, "/v2/"+repository+"/manifests/"+
						spelling, servers[0].admin, nil); resp.StatusCode == http.StatusOK {
						published = append(published, spelling)
					}
				}
				if len(published) != 1 {
					t.Fatalf("round %d has the tags %q after %v", round, published, statuses)
				}
				checkOneContent(t, servers, repository, published[0], statuses, false)
				if left := claimsIn(t, in, repository); len(left) > 0 {
					t.Fatalf("round %d leaves %d claims", round, len(left))
				}
			}
		})
	}
}

// TestAServerThatFailsAtAnyRequestBlocksNoOther lets a server fail at each of its requests to the backend and the
// API server, before and after the request arrives, while others push other content of the same version.
func TestAServerThatFailsAtAnyRequestBlocksNoOther(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, answered := range []bool{false, true} {
			t.Run(fmt.Sprint(n, " servers answered ", answered), func(t *testing.T) {
				servers, _, _ := startMortals(t, n)
				servers[0].life.answered = answered
				const mostRequests = 200
				step := 3
				if lane.IsFull() {
					step = 1
				}
				for requests := 1; ; requests += step {
					if requests > mostRequests {
						t.Fatal("the push does not end")
					}
					repository := fmt.Sprint("acme/boats", requests)
					servers[0].life.left.Store(int64(requests))
					statuses := pushAtOnce(t, servers, func(int) (string, string) { return repository, "v1.0.0" })
					survived := servers[0].life.left.Load() > 0
					servers[0].life.immortal()
					checkOneContent(t, servers, repository, "v1.0.0", statuses, true)
					if survived {
						return
					}
				}
			})
		}
	}
}

// TestAServerThatFailsAloneBlocksNoOther lets the only server that pushes fail at each of its requests. Then
// another one pushes other content at once.
func TestAServerThatFailsAloneBlocksNoOther(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprint("answered ", answered), func(t *testing.T) {
			servers, _, _ := startMortals(t, 2)
			servers[0].life.answered = answered
			accepted := 0
			for requests, survived := 1, false; !survived; requests++ {
				repository := fmt.Sprint("acme/boats", requests)
				servers[0].life.left.Store(int64(requests))
				first := servers[0].pushManifest(t.Context(), repository, "v1.0.0", "content 0")
				survived = servers[0].life.left.Load() > 0
				servers[0].life.immortal()
				second := servers[1].pushManifest(t.Context(), repository, "v1.0.0", "content 1")
				if second == http.StatusCreated {
					accepted++
				}
				checkOneContent(t, servers, repository, "v1.0.0", []int{first, second}, true)
			}
			if accepted == 0 {
				t.Error("the second server never published its content")
			}
		})
	}
}

// TestALatePermitWritesNothing suspends a server between its claim of a version and the write of the tag for longer
// than its permit. It writes nothing, and a later push of the same content succeeds.
func TestALatePermitWritesNothing(t *testing.T) {
	address, in, now := dockerregistry.Start(t), inCluster(t), newClock()
	var suspends atomic.Bool
	s := start(t, func(o *registry.Options) {
		o.Indexer, o.Now = noIndexer{}, now.read
		o.Backend = &registry.BackendOptions{
			Host: address, PlainHTTP: true, Cluster: wrapped(in, func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(r)
					if r.Method == http.MethodPost && suspends.CompareAndSwap(true, false) {
						now.add(31 * time.Second)
					}
					return resp, err
				})
			}),
		}
	})
	const repository = "acme/boats"
	if status := s.pushManifest(t.Context(), repository, "v0.1.0", "another version"); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	suspends.Store(true)
	status, body := s.tryPush(t.Context(), repository, "v1.0.0", "content")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "too slow") {
		t.Errorf("a push after the end of the permit: %d %s", status, body)
	}
	if got := s.do(t, http.MethodHead, "/v2/"+repository+"/manifests/v1.0.0", s.admin, nil).
		StatusCode; got != http.StatusNotFound {
		t.Errorf("the tag exists: %d", got)
	}
	if status := s.pushManifest(t.Context(), repository, "v1.0.0", "content"); status != http.StatusCreated {
		t.Errorf("the next push: status %d", status)
	}
}
