package faults_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// limit is how long a state may take on a machine that is busy.
const limit = 2 * time.Minute

// tokens finds the name of a round wherever it stands: in the name of its package,
// its revisions and its objects, in its API group and in its repository.
var tokens = regexp.MustCompile(`\br[0-9]{5}\b`)

// stand is where scenarios are played: an API server, a registry, and a package
// manager whose calls go through a network.
type stand struct {
	cfg      *rest.Config
	client   client.WithWatch
	registry string
	network  *fault.Network
	store    string
	journal  *journal
	witness  *witness
	process  *process
	// next is the number of the next round.
	next int
}

// newStand starts a package manager. The stands of a test binary share an API
// server, so each numbers its rounds from a place of its own.
func newStand(t testing.TB, who fault.Subjects, first int) *stand {
	t.Helper()
	cfg := cluster.Start(t)
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{
		cfg: cfg, client: c, registry: cluster.Registry(t), network: fault.New(who), store: t.TempDir() + "/store", journal: &journal{},
		next: first,
	}
	// The first process installs the package API, without which nothing can be
	// watched.
	s.start(t)
	t.Cleanup(func() { s.process.stop() })
	<-s.process.ready
	s.witness = watchAll(t, c)
	return s
}

// start starts a package manager in place of the one that was stopped.
func (s *stand) start(t testing.TB) {
	t.Helper()
	s.process = startProcess(t, s.cfg, s.network, s.registry, s.store, slog.NewTextHandler(s.journal, nil))
}

// restart ends the package manager, however dead it is, and starts another one,
// with which nothing is wrong.
func (s *stand) restart(t testing.TB) {
	t.Helper()
	s.process.stop()
	s.network.Clear()
	s.start(t)
}

// rounds makes packages for a scenario and brings them to the state before.
func (s *stand) rounds(t testing.TB, sc *scenario, n int) []*round {
	t.Helper()
	var out []*round
	for range n {
		r := &round{name: fmt.Sprintf("r%05d", s.next), host: aliasOf(s.registry, s.next), scenario: sc, contents: map[string]string{}}
		s.next++
		for _, v := range sc.versions {
			push(t, s.registry+strings.TrimPrefix(r.ref(v), r.host), stream(t, sc.kind, r.name, things(sc.kind, r.group(), v)))
		}
		s.witness.expect(r)
		out = append(out, r)
	}
	for _, stage := range sc.prepare {
		s.play(t, stage, out)
	}
	return out
}

// play does something with packages and waits for what comes of it.
func (s *stand) play(t testing.TB, st stage, rounds []*round) {
	t.Helper()
	s.do(t, st, rounds)
	s.until(t, "the packages are prepared", rounds, st.then)
}

func (s *stand) do(t testing.TB, st stage, rounds []*round) {
	t.Helper()
	for _, r := range rounds {
		if err := st.do(t.Context(), s, r); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
}

// until waits until all rounds are in a state.
func (s *stand) until(t testing.TB, what string, rounds []*round, want ending) {
	t.Helper()
	s.eventually(t, what, func() []string { return s.wrong(rounds, want, s.witness.view) })
}

// eventually waits until nothing is wrong.
func (s *stand) eventually(t testing.TB, what string, wrong func() []string) {
	t.Helper()
	wait.Until(t, limit, what, func() (string, bool) {
		all := wrong()
		return strings.Join(all, "\n"), len(all) == 0
	})
}

// wrong says of each round that is not in a state what differs.
func (s *stand) wrong(rounds []*round, want ending, now func(*round) view) []string {
	const most = 3
	var out []string
	more := 0
	for _, r := range rounds {
		right, got := want(r), now(r).of(r)
		switch {
		case slices.ContainsFunc(right, got.is):
		case len(out) == most:
			more++
		default:
			out = append(out, fmt.Sprintf("%s (%s)\n%s\nlog:\n%s", r.name, s.history(r), differ(right, got), s.journal.about(r.name)))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more packages", more))
	}
	return out
}

// history tells what happened to a round.
func (s *stand) history(r *round) string {
	for _, who := range []string{r.name, everyone} {
		if c, ok := s.network.Struck(who); ok {
			return fmt.Sprintf("%s at %s", s.network.Fault(who), c)
		}
	}
	return "not struck"
}

// quiet waits until nobody makes a call any more.
func (s *stand) quiet(t testing.TB) {
	t.Helper()
	const silence = 500 * time.Millisecond
	wait.Until(t, limit, "the package manager is done", func() (string, bool) {
		d := s.network.Quiet()
		return d.String(), d > silence
	})
}
