package faults_test

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
)

// wholeProcess is the subject of all calls of a process.
const wholeProcess = "wholeProcess"

// The manager survives each fault at the calls that belong to no package: the calls at the start of
// the process, calls that open watches, and writes of the Lock. The whole process is the subject,
// and gets the faults also at the calls of an install. Each call gets all faults in the full lane, and otherwise the
// faults take turns.
//
// hardening: J1
func TestFaultAtEveryCallOfAProcess(t *testing.T) {
	s := newSuite(t, fault.SingleSubject(wholeProcess), 10_001)
	s.process.stop()
	sc := &scenario{name: "start and install", kind: v1.ConfigurationKind, versions: one, act: toInstalled}
	faults := []fault.Fault{
		{Kind: fault.KilledBefore},
		{Kind: fault.KilledAfter},
		{Kind: fault.Conflict, Side: fault.Cluster},
		{Kind: fault.Throttled, Side: fault.Cluster},
		{Kind: fault.ServerError, Side: fault.Cluster},
		{Kind: fault.LostAnswer, Side: fault.Cluster},
	}
	for i, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			p := &runner{suite: s, scenario: sc}
			defer p.leftovers.Wait()
			if !f.Kind.Kills() {
				f.Filter = forNoPackage
			}
			started, step, injected := time.Now(), 1, 0
			if !everyFault {
				f.Call, step = i, sparse*len(faults)
			}
			for p.injectIntoProcess(t, f) {
				injected++
				f.Call += step
			}
			t.Logf("%s; %s: %d calls, in %s", sc.name, f, injected, time.Since(started).Round(100*time.Millisecond))
		})
	}
}

// forNoPackage reports whether a call belongs to no package.
func forNoPackage(c fault.Call) bool { return !tokens.MatchString(c.Path) }

// injectIntoProcess lets a process start and install a package, with a fault at one call. It reports
// whether the process made that call.
func (p *runner) injectIntoProcess(t *testing.T, f fault.Fault) (injected bool) {
	t.Helper()
	instances := p.acquire(t, 1)
	p.network.Set(wholeProcess, f)
	p.do(t, p.scenario.act, instances)
	p.start(t)
	p.eventually(t, "the process got its fault or is done", func() []string {
		if _, injected = p.network.Injected(wholeProcess); injected {
			return nil
		}
		return p.differencesWithLock(t.Context(), instances[0])
	})
	if f.Kind.Kills() {
		p.reportViolations(t, instances)
		p.restart(t)
	}
	p.eventually(t, "the package has survived "+p.history(instances[0]), func() []string {
		return p.differencesWithLock(t.Context(), instances[0])
	})
	p.process.stop()
	p.reportViolations(t, instances)
	p.discard(t, instances)
	return injected
}

// differencesWithLock describes the differences of the package and of the Lock. The packages of
// former instances of the suite were deleted while no process ran, and must leave the Lock.
func (s *suite) differencesWithLock(ctx context.Context, r *instance) []string {
	if wrong := s.differences([]*instance{r}, r.scenario.end(), s.observer.snapshot); len(wrong) > 0 {
		return wrong
	}
	lock := &v1beta1.Lock{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
		return []string{err.Error()}
	}
	var locked []string
	for _, entry := range lock.Packages {
		if s.owns(entry.Name) {
			locked = append(locked, entry.Source)
		}
	}
	if diff := gocmp.Diff([]string{r.host + r.repository()}, locked); diff != "" {
		return []string{"the packages in the Lock:\n" + diff}
	}
	return nil
}
