// Package leader_test lets two managers of one cluster take turns, and proves that
// the one that is cut off writes nothing once the other one has begun.
package leader_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/plane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// takeover is how long a cluster may be without a manager after one was cut off.
	takeover = 20 * time.Second
	// handedOver is the same after one that has ended as it should.
	handedOver = 8 * time.Second
	// patience is for a machine that is busy.
	patience = time.Minute

	// definitions is how many objects each change of a package writes.
	definitions = 20
	// rounds is how often a manager is halted.
	rounds = 3
)

// One of two managers works. When it is killed, halted, or stopped, the other one
// works soon after, and a manager that was halted and goes on does no harm.
//
// hardening: J5
func TestTakingTurns(t *testing.T) {
	log.SetLogger(logr.Discard())
	s := newStand(t)
	a, b := s.start(t), s.start(t)
	wait.Until(t, patience, "one of them leads", func() (string, bool) { return a.Log() + b.Log(), a.leads() || b.leads() })
	if !a.leads() {
		a, b = b, a
	}
	s.busy(t, a, 2*definitions)

	// Killed: the Lease runs out.
	at := time.Now()
	a.Kill()
	s.follows(t, "a manager that was killed", a, b, at, takeover)

	// Halted at any moment, for longer than the Lease lasts.
	leads, waits := b, s.start(t)
	for round := range rounds {
		s.busy(t, leads, definitions*(round+1))
		at = time.Now()
		leads.signal(t, syscall.SIGSTOP)
		s.follows(t, "a manager that was halted", leads, waits, at, takeover)
		leads.signal(t, syscall.SIGCONT)
		wait.Until(t, patience, "the manager knows that it does not lead any more", func() (string, bool) {
			return leads.Log(), strings.Count(leads.Log(), "does not lead any more") == leads.halts+1
		})
		leads.halts++
		s.busy(t, waits, 2*definitions)
		s.inOrder(t, leads, waits)
		leads, waits = waits, leads
	}

	// Stopped: it gives the Lease back, and only when everything has ended.
	at = time.Now()
	leads.Stop(t)
	s.follows(t, "a manager that was stopped", leads, waits, at, handedOver)
	waits.Stop(t)
}

// stand is a cluster in which there is always something to do.
type stand struct {
	cfg       *rest.Config
	client    client.Client
	program   string
	namespace string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	cfg := cluster.Start(t)
	s := &stand{cfg: cfg, client: plane.Client(t, cfg), program: program.Build(t), namespace: "leader"}
	core, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// contender is a manager with what it has written.
type contender struct {
	*program.Manager
	*recorder
	// since is how many of its writes belong to earlier terms, and halts how often it
	// was halted.
	since, halts int
}

func (s *stand) start(t *testing.T) *contender {
	t.Helper()
	r := record(t, s.cfg)
	m := program.Start(t, s.program, r.kubeconfig, t.TempDir(), "--leader-election", "--namespace", s.namespace)
	return &contender{Manager: m, recorder: r}
}

func (c *contender) leads() bool { return strings.Contains(c.Log(), "leads") }

func (c *contender) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(c.PID(), s); err != nil {
		t.Fatal(err)
	}
}

// term gives the writes of the present term.
func (c *contender) term() []write { return c.all()[c.since:] }

// busy changes a package again and again until the manager has made that many writes
// because of it.
func (s *stand) busy(t *testing.T, c *contender, writes int) {
	t.Helper()
	s.work(t)
	want := len(c.all()) + writes
	wait.Until(t, patience, "the manager works", func() (string, bool) {
		return fmt.Sprintf("%d of %d writes\n%s", len(c.all()), want, c.Log()), len(c.all()) >= want
	})
}

// follows waits until next writes, after former was cut off at a time.
func (s *stand) follows(t *testing.T, what string, former, next *contender, at time.Time, limit time.Duration) {
	t.Helper()
	next.since = len(next.all())
	wait.Until(t, patience, "another manager works", func() (string, bool) {
		return next.Log(), len(next.term()) > 0
	})
	took := next.term()[0].at.Sub(at)
	t.Logf("after %s another one wrote after %s", what, took.Round(10*time.Millisecond))
	if took > limit {
		t.Errorf("after %s another one wrote after %s, want %s at most", what, took, limit)
	}
	s.inOrder(t, former, next)
}

// inOrder fails when a write of the former manager stands behind the first one of the
// next.
func (s *stand) inOrder(t *testing.T, former, next *contender) {
	t.Helper()
	first := next.term()[0]
	for _, w := range next.term() {
		if w.revision < first.revision {
			first = w
		}
	}
	for _, w := range former.all() {
		if w.revision > first.revision {
			t.Errorf("%s at %d, after the next manager wrote %s at %d", w.what, w.revision, first.what, first.revision)
		}
	}
}

// work changes the labels of a package for as long as the test runs: each change is
// another revision, and writes every object.
func (s *stand) work(t *testing.T) {
	t.Helper()
	p := v1.NewPackage(v1.ProviderKind)
	if s.client.Get(t.Context(), client.ObjectKey{Name: "busy"}, p) == nil {
		return
	}
	ref := publish.Stream(t, cluster.Registry(t), "leader/busy", "v1.0.0", []byte(stream()))
	p.SetName("busy")
	p.PackageSpec().Package = ref.String()
	wait.Until(t, patience, "the package API is served", func() (string, bool) {
		err := s.client.Create(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			patch := fmt.Sprintf(`{"spec":{"commonLabels":{"n":"%d"}}}`, n)
			busy := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}
			_ = s.client.Patch(ctx, busy, client.RawPatch(types.MergePatchType, []byte(patch)))
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// pause is between two changes.
const pause = 100 * time.Millisecond

// stream is a provider with many definitions.
func stream() string {
	var out strings.Builder
	out.WriteString("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: busy\n")
	for i := range definitions {
		fmt.Fprintf(&out, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: kind%[1]ds.leader.example.org
spec:
  group: leader.example.org
  names: {kind: Kind%[1]d, plural: kind%[1]ds}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object}
`, i)
	}
	return out.String()
}
