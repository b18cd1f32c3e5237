package lease

import (
	"context"
	"io"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/testing/clock"
	"github.com/xpkg-dev/xpkg/internal/testing/inprocess"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// tester is the part of a test that the tests and the property use.
type tester interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Cleanup(cleanup func())
}

// machine is a server that claims the lease.
type machine struct {
	*Lease
	// until is the time until which the machine believes that it holds the lease.
	until time.Time
}

// machines are servers in front of one registry, with one clock.
type machines struct {
	clock   *clock.Clock
	handler http.Handler
	all     []*machine
	// beforeWrite, if set, is called before a machine replaces the tag.
	beforeWrite func(from int)
}

// newMachines returns servers that have not claimed anything.
func newMachines(t tester, n int) *machines {
	t.Helper()
	m := &machines{clock: clock.New(), handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	for i := range n {
		client := remote.New(remote.Options{Transport: transport{m, i}, Attempts: 1})
		t.Cleanup(client.Close)
		m.all = append(m.all, &machine{Lease: &Lease{Client: client, Ref: oci.MustParseReference("registry.example.org/index:lease"), Now: m.clock.Now}})
	}
	return m
}

// transport sends the requests of a machine to the registry.
type transport struct {
	m    *machines
	from int
}

// RoundTrip implements [http.RoundTripper].
func (x transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := x.m.beforeWrite; f != nil && r.Method == http.MethodPut && r.URL.Path == "/v2/index/manifests/lease" {
		x.m.beforeWrite = nil
		f(x.from)
		x.m.beforeWrite = f
	}
	return inprocess.Transport{Handler: x.m.handler}.RoundTrip(r)
}

// hold lets a machine claim or renew the lease, and reports whether it holds it.
func (m *machines) hold(t tester, i int) bool {
	t.Helper()
	remaining, err := m.all[i].Hold(t.Context())
	if err != nil {
		t.Fatalf("machine %d: %v", i, err)
	}
	m.all[i].until = m.clock.Now().Add(remaining)
	return remaining > 0
}

// holders returns the machines that believe that they hold the lease.
func (m *machines) holders() []int {
	var out []int
	for i, x := range m.all {
		if x.until.After(m.clock.Now()) {
			out = append(out, i)
		}
	}
	return out
}

// acquire makes a machine the holder of a lease that no other one holds.
func (m *machines) acquire(t tester, i int) {
	t.Helper()
	if m.hold(t, i) {
		t.Fatalf("machine %d holds the lease without a confirmation", i)
	}
	m.clock.Add(m.all[i].Wait())
	if !m.hold(t, i) {
		t.Fatalf("machine %d does not hold the lease", i)
	}
}

func TestTheHolderKeepsTheLeaseWhileItRenewsIt(t *testing.T) {
	m := newMachines(t, 2)
	m.acquire(t, 0)
	for range 100 {
		m.clock.Add(time.Minute)
		if !m.hold(t, 0) || m.hold(t, 1) {
			t.Fatalf("after a minute, %v hold the lease", m.holders())
		}
	}
}

func TestAnotherServerTakesOverAfterTheExpiry(t *testing.T) {
	m := newMachines(t, 2)
	m.acquire(t, 0)
	if m.hold(t, 1) {
		t.Fatal("two machines hold the lease")
	}
	for range 3 {
		m.clock.Add(Duration / 3)
		if m.hold(t, 1) {
			t.Fatal("the other machine holds a lease without a confirmation")
		}
	}
	m.clock.Add(m.all[1].Wait())
	if !m.hold(t, 1) {
		t.Fatal("the other machine does not take over")
	}
	// The former holder wakes up late, and waits like any other.
	for range 10 {
		if m.hold(t, 0) {
			t.Fatal("the former holder still holds the lease")
		}
		m.clock.Add(time.Minute)
		if !m.hold(t, 1) {
			t.Fatal("the new holder lost the lease")
		}
	}
}

func TestAReleasedLeaseIsClaimedAtOnce(t *testing.T) {
	m := newMachines(t, 2)
	m.acquire(t, 0)
	if m.hold(t, 1) {
		t.Fatal("two machines hold the lease")
	}
	if err := m.all[1].Release(t.Context()); err != nil || !m.hold(t, 0) {
		t.Fatalf("a machine releases the lease of another: %v", err)
	}
	if err := m.all[0].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.all[0].until = time.Time{}
	m.acquire(t, 1)
}

func TestOfClaimsAtTheSameTimeOneRemains(t *testing.T) {
	m := newMachines(t, 2)
	// The second machine reads the tag before the first one writes it, and writes after it.
	m.beforeWrite = func(from int) {
		if from == 0 {
			m.beforeWrite = nil
			m.hold(t, 1)
		}
	}
	m.hold(t, 0)
	m.clock.Add(DefaultSettle)
	first, second := m.hold(t, 0), m.hold(t, 1)
	if first == second {
		t.Errorf("the first machine holds the lease: %t, the second: %t", first, second)
	}
}

// TestNoTwoServersHoldTheLease lets servers claim and renew at random times, also between the read and the write of another one, which
// take as long as a request can.
func TestNoTwoServersHoldTheLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachines(t, 3)
		machine := rapid.IntRange(0, 2)
		m.beforeWrite = func(from int) {
			for range rapid.IntRange(0, 3).Draw(t, "calls between read and write") {
				if other := machine.Draw(t, "between"); other != from {
					m.hold(t, other)
				}
				m.clock.Add(time.Duration(rapid.IntRange(0, int(requestTime/time.Millisecond)/3-1).Draw(t, "delay")) * time.Millisecond)
			}
		}
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			m.clock.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 7, 15, 60, 100, 180, 400}).Draw(t, "seconds")) * time.Second)
			m.hold(t, machine.Draw(t, "machine"))
			if holders := m.holders(); len(holders) > 1 {
				t.Fatalf("the machines %v hold the lease", holders)
			}
		}
	})
}
