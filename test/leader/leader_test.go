// Package leader_test runs two managers with leader election, and proves that a former leader writes
// nothing after the first write of its successor.
package leader_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// definitions is the number of objects that each change of a package writes.
	definitions = 20
	// rounds is the number of times that a manager is halted.
	rounds = 3
)

// One of two managers works. When it is killed, halted or stopped, the other one takes over. A manager
// that continues after a halt writes nothing.
//
// hardening: J5
func TestFormerLeaderWritesNothing(t *testing.T) {
	log.SetLogger(logr.Discard())
	s := newSuite(t)
	a, b := s.start(t), s.start(t)
	wait.Until(
		t, env.Limit, "one of them leads", func() (string, bool) { return a.Log() + b.Log(), a.leads() || b.leads() },
	)
	if !a.leads() {
		a, b = b, a
	}
	s.busy(t, a, 2*definitions)

	// Killed: the Lease runs out.
	a.Kill()
	s.follows(t, "a manager that was killed", a, b)

	// Halted at any moment, for longer than the Lease lasts.
	leads, waits := b, s.start(t)
	for round := range rounds {
		s.busy(t, leads, definitions*(round+1))
		leads.signal(t, syscall.SIGSTOP)
		s.follows(t, "a manager that was halted", leads, waits)
		leads.signal(t, syscall.SIGCONT)
		wait.Until(t, env.Limit, "the manager knows that it is no longer the leader", func() (string, bool) {
			return leads.Log(), strings.Count(leads.Log(), "is no longer the leader") == leads.halts+1
		})
		leads.halts++
		s.busy(t, waits, 2*definitions)
		s.inOrder(t, leads, waits)
		leads, waits = waits, leads
	}

	// Stopped: it releases the Lease after all its work has ended.
	holder := s.holder(t)
	leads.Stop(t)
	if s.holder(t) == holder {
		t.Errorf("the stopped manager %s still holds the Lease", holder)
	}
	s.follows(t, "a manager that was stopped", leads, waits)
	waits.Stop(t)
}

// suite is an environment with a package that changes continuously.
type suite struct {
	*env.Env
	core      client.Client
	program   string
	namespace string
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{Env: env.New(t), program: program.Build(t), namespace: "leader"}
	var err error
	if s.core, err = client.New(s.Config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	s.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	return s
}

// holder returns the identity of the manager that holds the Lease.
func (s *suite) holder(t *testing.T) string {
	t.Helper()
	var leases coordinationv1.LeaseList
	if err := s.core.List(t.Context(), &leases, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(leases.Items) != 1 {
		t.Fatalf("%d Leases, want 1", len(leases.Items))
	}
	if holder := leases.Items[0].Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// contender is a manager and its recorded writes.
type contender struct {
	*program.Manager
	*recorder
	// since is the number of its writes in former terms, and halts the number of its halts.
	since, halts int
}

func (s *suite) start(t *testing.T) *contender {
	t.Helper()
	r := record(t, s.Config)
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

// term returns the writes of the present term.
func (c *contender) term() []write { return c.all()[c.since:] }

// busy changes a package until the manager has made a number of writes.
func (s *suite) busy(t *testing.T, c *contender, writes int) {
	t.Helper()
	s.work(t)
	want := len(c.all()) + writes
	wait.Until(t, env.Limit, "the manager works", func() (string, bool) {
		return fmt.Sprintf("%d of %d writes\n%s", len(c.all()), want, c.Log()), len(c.all()) >= want
	})
}

// follows waits until next writes, after former was stopped in some way.
func (s *suite) follows(t *testing.T, reason string, former, next *contender) {
	t.Helper()
	next.since = len(next.all())
	wait.Until(t, env.Limit, "another manager works after "+reason, func() (string, bool) {
		return next.Log(), len(next.term()) > 0
	})
	s.inOrder(t, former, next)
}

// inOrder fails if a write of the former manager follows the first write of the next one.
func (s *suite) inOrder(t *testing.T, former, next *contender) {
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

// work changes the labels of a package until the test ends. Each change creates a revision, which
// writes every object.
func (s *suite) work(t *testing.T) {
	t.Helper()
	p := v1.NewPackage(v1.ProviderKind)
	if s.Client.Get(t.Context(), client.ObjectKey{Name: "busy"}, p) == nil {
		return
	}
	ref := s.Push(t, "leader/busy", "v1.0.0", stream())
	p.SetName("busy")
	p.PackageSpec().Package = ref
	wait.Until(t, env.Limit, "the package API is served", func() (string, bool) {
		err := s.Client.Create(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			patch := fmt.Sprintf(`{"spec":{"commonLabels":{"n":"%d"}}}`, n)
			busy := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}
			_ = s.Client.Patch(ctx, busy, client.RawPatch(types.MergePatchType, []byte(patch)))
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

// pause is the time between two changes.
const pause = 100 * time.Millisecond

// stream returns the package.yaml of a provider with many CRDs.
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
