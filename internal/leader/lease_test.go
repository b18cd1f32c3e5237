package leader_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// limit is for a machine that is busy with other tests.
const limit = 2 * time.Minute

// member is a manager that takes part in an election.
type member struct {
	works atomic.Int32 // the number of times that its work began
	fence atomic.Pointer[transport.WrapperFunc]
	ended chan struct{}
	err   error // to be read after ended is closed
	stop  func()
}

// join starts a manager that works until it is stopped.
func join(t *testing.T, cfg *rest.Config, e leader.Election) *member {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{ended: make(chan struct{})}
	m.stop = func() {
		cancel()
		<-m.ended
	}
	t.Cleanup(m.stop)
	go func() {
		defer close(m.ended)
		m.err = leader.Run(ctx,
			e, cfg, slog.New(slog.DiscardHandler), logr.Discard(), func(ctx context.Context, fence transport.WrapperFunc) error {
				m.fence.Store(&fence)
				m.works.Add(1)
				<-ctx.Done()
				return ctx.Err()
			})
	}()
	return m
}

func (m *member) untilWorking(t *testing.T) {
	t.Helper()
	wait.Until(t, limit, "the manager works", func() (string, bool) { return "", m.works.Load() > 0 })
}

// write makes a call through the fence of the manager.
func (m *member) write(t *testing.T) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (*m.fence.Load())(accepts{}).RoundTrip(r)
	if err == nil {
		err = res.Body.Close()
	}
	return err
}

// accepts is a server that accepts every call.
type accepts struct{}

func (accepts) RoundTrip(*http.Request) (*http.Response, error) {
	return httptest.NewRecorder().Result(), nil
}

func (m *member) isWorking() bool {
	select {
	case <-m.ended:
		return false
	default:
		return m.works.Load() > 0
	}
}

// untilRefused waits until the manager fails because of another one.
func (m *member) untilRefused(t *testing.T, other string) {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(limit):
		t.Fatal("the manager did not notice the other one")
	}
	var e *errcode.Error
	if !errors.Is(m.err, leader.ErrAnotherManager) || !errors.As(m.err, &e) {
		t.Fatalf("got %v, want AnotherManager", m.err)
	}
	if !strings.Contains(e.What, "the manager "+other+" has held the Lease default/") ||
		!strings.Contains(e.Do, "`kubectl get lease --namespace default "+leaseName(t)+" ") {
		t.Errorf("the failure does not name the other manager %s: %s\n%s", other, e.What, e.Do)
	}
}

// election returns the election of a test.
func election(t *testing.T, identity string, exclusive bool) leader.Election {
	t.Helper()
	return leader.Election{Namespace: "default", Name: leaseName(t), Identity: identity, Exclusive: exclusive}
}

func leaseName(t *testing.T) string {
	t.Helper()
	name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	return strings.ToLower(name)
}

func leasesOf(t *testing.T, cfg *rest.Config) leases.LeaseInterface {
	t.Helper()
	c, err := leases.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leases("default")
}

// hold creates the Lease of a manager that never renews it.
func hold(t *testing.T, cfg *rest.Config, holder string, seconds int32) {
	t.Helper()
	now := metav1.NowMicro()
	_, err := leasesOf(t, cfg).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leaseName(t)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// A second manager is noticed, whether or not one of the two takes part in leader election.
func TestSecondManagerIsNoticed(t *testing.T) {
	cfg := cluster.Start(t)
	for name, tc := range map[string]struct{ first, second bool }{
		"both-exclusive":   {true, true},
		"second-exclusive": {false, true},
		"first-exclusive":  {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			first := join(t, cfg, election(t, "first", tc.first))
			first.untilWorking(t)
			second := join(t, cfg, election(t, "second", tc.second))
			if tc.second {
				second.untilRefused(t, "first")
				if second.works.Load() > 0 || !first.isWorking() {
					t.Error("the second manager disturbed the first one")
				}
				return
			}
			first.stop()
			second.untilWorking(t)
			if first.err != nil {
				t.Errorf("the first manager ended with %v", first.err)
			}
		})
	}
}

// The Lease of a manager that crashed is taken over after its duration, and at once by a manager with the same
// identity.
func TestLeaseOfACrashedManagerIsTakenOver(t *testing.T) {
	cfg := cluster.Start(t)
	for name, tc := range map[string]struct {
		holder  string
		seconds int32
	}{
		"expires":       {"crashed", 1},
		"same-identity": {"restarted", 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			hold(t, cfg, tc.holder, tc.seconds)
			m := join(t, cfg, election(t, "restarted", true))
			m.untilWorking(t)
			if err := m.write(t); err != nil {
				t.Errorf("the manager cannot write: %v", err)
			}
		})
	}
}

// A manager that excludes others by another lock takes the Lease of every holder, whatever the Lease declares, and
// after that it works.
func TestLeaseIsPreempted(t *testing.T) {
	cfg := cluster.Start(t)
	hold(t, cfg, "hostile", 1)
	e := election(t, "first", true)
	e.Preempt = true
	m := join(t, cfg, e)
	m.untilWorking(t)
	if err := m.write(t); err != nil {
		t.Errorf("the manager cannot write: %v", err)
	}
	for _, seconds := range []int32{1, math.MaxInt32} {
		take(t, cfg, "hostile", seconds)
		wait.Until(t, limit, "the manager has taken the Lease back", func() (string, bool) {
			lease, err := leasesOf(t, cfg).Get(t.Context(), leaseName(t), metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			return *lease.Spec.HolderIdentity, *lease.Spec.HolderIdentity == "first"
		})
	}
	if err := m.write(t); err != nil || m.works.Load() != 1 || !m.isWorking() {
		t.Errorf("the work began %d times, want once; a write: %v", m.works.Load(), err)
	}
}

// take changes the holder of a Lease.
func take(t *testing.T, cfg *rest.Config, holder string, seconds int32) {
	t.Helper()
	wait.Until(t, limit, "the Lease has another holder", func() (string, bool) {
		lease, err := leasesOf(t, cfg).Get(t.Context(), leaseName(t), metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &holder, &seconds
		_, err = leasesOf(t, cfg).Update(t.Context(), lease, metav1.UpdateOptions{})
		return "", err == nil
	})
}

// A manager that finds another holder of its Lease stops, and writes nothing more.
func TestLostLeaseStopsTheManager(t *testing.T) {
	cfg := cluster.Start(t)
	m := join(t, cfg, election(t, "first", true))
	m.untilWorking(t)
	take(t, cfg, "other", 10)
	m.untilRefused(t, "other")
	if err := m.write(t); !errors.Is(err, leader.ErrDeposed) {
		t.Errorf("the former holder can write: %v", err)
	}
}

// A manager without standby survives an API server that does not answer: it writes nothing until it has renewed its
// Lease.
func TestExclusiveManagerContinuesAfterAnOutage(t *testing.T) {
	cfg := rest.CopyConfig(cluster.Start(t))
	var down atomic.Bool
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if down.Load() {
				return nil, io.ErrUnexpectedEOF
			}
			return next.RoundTrip(r)
		})
	})
	e := election(t, "first", true)
	e.Duration = 3 * time.Second
	m := join(t, cfg, e)
	m.untilWorking(t)
	down.Store(true)
	wait.Until(t, limit, "writes stop", func() (string, bool) { return "", errors.Is(m.write(t), leader.ErrDeposed) })
	down.Store(false)
	wait.Until(t, limit, "writes continue", func() (string, bool) { return "", m.write(t) == nil })
	if n := m.works.Load(); n != 1 || !m.isWorking() {
		t.Errorf("the work began %d times, want once", n)
	}
}

// A manager without permissions for its Lease fails instead of waiting forever.
func TestForbiddenLeaseIsAFailure(t *testing.T) {
	cfg := rest.CopyConfig(cluster.Start(t))
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "without-permissions", Groups: []string{"system:authenticated"}}
	for _, exclusive := range []bool{true, false} {
		m := join(t, cfg, election(t, "first", exclusive))
		<-m.ended
		if !apierrors.IsForbidden(m.err) || !strings.Contains(m.err.Error(), "take the Lease default/") {
			t.Errorf("exclusive %t: %v", exclusive, m.err)
		}
	}
}

// A manager that may use its Lease continues after an API server has denied it: one that has just started denies
// requests until it has read the roles.
func TestDenialsAfterAStartOfTheAPIServerAreNoFailure(t *testing.T) {
	for name, held := range map[string]bool{"leader": true, "standby": false} {
		t.Run(name, func(t *testing.T) {
			cfg := rest.CopyConfig(cluster.Start(t))
			var denies atomic.Bool
			var reads, denials atomic.Int32
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if !denies.Load() {
						res, err := next.RoundTrip(r)
						reads.Add(1)
						return res, err
					}
					denials.Add(1)
					answer := httptest.NewRecorder()
					answer.WriteHeader(http.StatusForbidden)
					return answer.Result(), nil
				})
			})
			e := election(t, "first", false)
			e.Duration = 3 * time.Second
			if !held {
				hold(t, cfg, "other", 3600)
			}
			m := join(t, cfg, e)
			if held {
				m.untilWorking(t)
			} else {
				wait.Until(t, limit, "the standby reads the Lease", func() (string, bool) { return "", reads.Load() > 1 })
			}
			denies.Store(true)
			wait.Until(t, limit, "denials", func() (string, bool) {
				select {
				case <-m.ended:
					t.Fatalf("the manager ended: %v", m.err)
				default:
				}
				return "", denials.Load() > 10
			})
			denies.Store(false)
			if held {
				wait.Until(t, limit, "the work begins again", func() (string, bool) { return "", m.works.Load() > 1 })
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
