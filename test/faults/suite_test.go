package faults_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// tokens matches the name of an instance wherever it occurs: in the name of its package, its
// revisions and its objects, in its API group and in its repository.
var tokens = regexp.MustCompile(`\br[0-9]{5}\b`)

// suite runs scenarios with a package manager whose calls pass through a network.
type suite struct {
	*env.Env
	network  *fault.Network
	store    string
	log      *logTail
	observer *observer
	process  *process
	// first is the number of the first instance, and next the number of the next one.
	first, next int
}

// newSuite starts a package manager. The suites of a test binary share an API server, so their
// instances have different numbers, beginning with first.
func newSuite(t testing.TB, subjects fault.Subjects, first int) *suite {
	t.Helper()
	s := &suite{Env: env.New(t), network: fault.New(subjects), store: t.TempDir() +
		"/store", log: &logTail{}, first: first, next: first}
	// The first process installs the package API, which the observer watches.
	s.start(t)
	t.Cleanup(func() { s.process.stop() })
	<-s.process.ready
	s.observer = observe(t, s.Client)
	return s
}

// owns reports whether an object belongs to an instance of this suite.
func (s *suite) owns(name string) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(tokens.FindString(name), "r"))
	return err == nil && number >= s.first && number < s.next
}

// start starts a package manager. The former one must have been stopped.
func (s *suite) start(t testing.TB) {
	t.Helper()
	s.process = startProcess(t, s.Config, s.network, s.Registry, s.store, slog.NewTextHandler(s.log, nil))
}

// restart stops the package manager and starts another one without faults.
func (s *suite) restart(t testing.TB) {
	t.Helper()
	s.process.stop()
	s.network.Clear()
	s.start(t)
}

// newInstances publishes packages for a scenario and brings them to its initial state.
func (s *suite) newInstances(t testing.TB, sc *scenario, n int) []*instance {
	t.Helper()
	var out []*instance
	for range n {
		r := &instance{
			name: fmt.Sprintf("r%05d", s.next), host: hostAlias(s.Registry, s.next), scenario: sc, contents: map[string]string{},
		}
		s.next++
		for _, v := range sc.versions {
			s.Push(t, strings.TrimPrefix(r.repository(), "/"), v+
				".0.0", packageYAML(t, sc.kind, r.name, objectsOf(sc.kind, r.group(), v)))
		}
		s.observer.add(r)
		out = append(out, r)
	}
	for _, step := range sc.prepare {
		s.runStep(t, step, out)
	}
	return out
}

// runStep runs a step for packages and waits for one of its outcomes.
func (s *suite) runStep(t testing.TB, st step, instances []*instance) {
	t.Helper()
	s.do(t, st, instances)
	s.until(t, "the packages are prepared", instances, st.then)
}

func (s *suite) do(t testing.TB, st step, instances []*instance) {
	t.Helper()
	for _, r := range instances {
		if err := st.do(t.Context(), s, r); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
}

// until waits until each instance has one of the outcomes.
func (s *suite) until(t testing.TB, state string, instances []*instance, want outcomes) {
	t.Helper()
	s.eventually(t, state, func() []string { return s.differences(instances, want, s.observer.snapshot) })
}

// eventually waits until there are no differences.
func (s *suite) eventually(t testing.TB, state string, differences func() []string) {
	t.Helper()
	wait.Until(t, env.Limit, state, func() (string, bool) {
		all := differences()
		return strings.Join(all, "\n"), len(all) == 0
	})
}

// differences describes the difference of each instance from its outcomes.
func (s *suite) differences(instances []*instance, want outcomes, now func(*instance) snapshot) []string {
	const most = 3
	var out []string
	more := 0
	for _, r := range instances {
		right, got := want(r), now(r).of(r)
		switch {
		case slices.ContainsFunc(right, got.equals):
		case len(out) == most:
			more++
		default:
			out = append(
				out, fmt.Sprintf("%s (%s)\n%s\nlog:\n%s", r.name, s.history(r), smallestDiff(right, got), s.log.matching(r.name)),
			)
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more packages", more))
	}
	return out
}

// history describes the fault that an instance got.
func (s *suite) history(r *instance) string {
	for _, subject := range []string{r.name, wholeProcess} {
		if c, ok := s.network.Injected(subject); ok {
			return fmt.Sprintf("%s at %s", s.network.Fault(subject), c)
		}
	}
	return "no fault"
}

// waitIdle waits until the package manager makes no more calls.
func (s *suite) waitIdle(t testing.TB) {
	t.Helper()
	wait.Until(t, env.Limit, "the package manager is idle", func() (string, bool) {
		d := s.network.Idle()
		return d.String(), d > idleTime
	})
}
