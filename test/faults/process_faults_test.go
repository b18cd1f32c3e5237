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

// everyone is the subject of all calls of a process.
const everyone = "everyone"

// Some calls are made for no package: those at the start of the process, those that
// open watches, and those that write the Lock. The whole process is struck at each
// of them, and at those at which a package is installed.
func TestFaultAtEveryCallOfAProcess(t *testing.T) {
	s := newStand(t, fault.Whole(everyone), 10_001)
	s.process.stop()
	sc := &scenario{name: "start and install", kind: v1.ConfigurationKind, versions: one, act: toInstalled}
	for _, f := range []fault.Fault{
		{Kind: fault.KilledBefore},
		{Kind: fault.KilledAfter},
		{Kind: fault.Conflict, Side: fault.Cluster},
		{Kind: fault.Throttled, Side: fault.Cluster},
		{Kind: fault.ServerError, Side: fault.Cluster},
		{Kind: fault.LostAnswer, Side: fault.Cluster},
	} {
		t.Run(f.String(), func(t *testing.T) {
			p := &play{stand: s, scenario: sc}
			defer p.leftovers.Wait()
			if !f.Kind.Kills() {
				f.Among = forNoPackage
			}
			started := time.Now()
			for p.strikeProcess(t, f) {
				f.Call++
			}
			t.Logf("%s; %s: %d calls, in %s", sc.name, f, f.Call, time.Since(started).Round(100*time.Millisecond))
		})
	}
}

// forNoPackage tells the calls that are made for no package.
func forNoPackage(c fault.Call) bool { return !tokens.MatchString(c.Path) }

// strikeProcess lets a process start and install a package, and strikes it at one
// call. It says whether the process got that far.
func (p *play) strikeProcess(t *testing.T, f fault.Fault) (struck bool) {
	t.Helper()
	rounds := p.take(t, 1)
	p.network.Set(everyone, f)
	p.do(t, p.scenario.act, rounds)
	p.start(t)
	p.eventually(t, "the process is struck or done", func() []string {
		if _, struck = p.network.Struck(everyone); struck {
			return nil
		}
		return p.wrongWithLock(t.Context(), rounds[0])
	})
	if f.Kind.Kills() {
		p.accuse(t, rounds)
		p.restart(t)
	}
	p.eventually(t, "the package has survived "+p.history(rounds[0]), func() []string {
		return p.wrongWithLock(t.Context(), rounds[0])
	})
	p.process.stop()
	p.accuse(t, rounds)
	p.discard(t, rounds)
	return struck
}

// wrongWithLock says what differs, in the package or in the Lock. The packages of
// the rounds before were deleted while no process ran, and must leave the Lock.
func (s *stand) wrongWithLock(ctx context.Context, r *round) []string {
	if wrong := s.wrong([]*round{r}, r.scenario.end(), s.witness.view); len(wrong) > 0 {
		return wrong
	}
	lock := &v1beta1.Lock{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
		return []string{err.Error()}
	}
	var locked []string
	for _, entry := range lock.Packages {
		if tokens.MatchString(entry.Name) {
			locked = append(locked, entry.Source)
		}
	}
	if diff := gocmp.Diff([]string{r.host + r.repository()}, locked); diff != "" {
		return []string{"the packages in the Lock:\n" + diff}
	}
	return nil
}
