package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/usage"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// limit is the longest time that a step may take.
	limit = 30 * time.Minute
	// quietFor is the time without calls after which the system counts as idle, and quietLoad the share
	// of a processor that the API server may use meanwhile: when idle it uses a hundredth.
	quietFor  = 2 * time.Second
	quietLoad = 0.1
)

// A meter measures the resource usage of the API server and a client.
type meter struct {
	proxy *proxy
	// server is the process ID of the API server.
	server int
	// client is the process ID of the client; 0 if it shares a process with other code, so that its
	// usage is unknown.
	client int
}

// reading is a measurement at one moment.
type reading struct {
	at             time.Time
	mark           int
	server, client usage.Usage
	// others is the processor time of all processes except for the server, the client and this one.
	others time.Duration
	// work is the processor time of the fixed work until this moment; 0 if it was not measured.
	work time.Duration
}

func (m meter) read(t testing.TB) reading {
	t.Helper()
	r := reading{at: time.Now(), mark: m.proxy.mark(), server: usageOf(t, m.server)}
	if m.client != 0 {
		r.client = usageOf(t, m.client)
	}
	machine, err := usage.Machine()
	if err != nil {
		t.Fatal(err)
	}
	r.others = machine - r.server.CPU - r.client.CPU - usageOf(t, os.Getpid()).CPU
	return r
}

func usageOf(t testing.TB, pid int) usage.Usage {
	t.Helper()
	u, err := usage.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// quiet waits until the API server and the client are idle, and returns the reading at the start of the
// idle time.
func (m meter) quiet(t testing.TB) reading {
	t.Helper()
	first := m.read(t)
	wait.Until(t, limit, "everything is quiet", func() (string, bool) {
		now := m.read(t)
		busy := now.server.CPU - first.server.CPU
		if now.mark != first.mark || busy > time.Duration(quietLoad*float64(quietFor)) {
			first = now
		}
		return fmt.Sprintf("%d calls, the API server used %s in %s", now.mark-first.mark, busy, now.at.Sub(first.at)),
			now.at.Sub(first.at) > quietFor
	})
	return first
}

// measure runs do while the system is idle, and returns the usage until it is idle again. The time is
// measured until do returns.
func (m meter) measure(t testing.TB, size int, what string, do func()) row {
	t.Helper()
	m.quiet(t)
	if m.client != 0 {
		if err := usage.ResetPeak(m.client); err != nil {
			t.Fatal(err)
		}
	}
	before, stop := m.read(t), measureSpeed(t)
	do()
	done := m.read(t)
	done.work = stop()
	return m.row(t, before, done, size, what)
}

// react is like measure for an operation without a result to wait for: the time is measured until the
// last call of the client.
func (m meter) react(t testing.TB, size int, what string, do func()) row {
	t.Helper()
	r := m.measure(t, size, what, do)
	r.wall = r.calls.last(r.started).Sub(r.started)
	return r
}

// row returns the usage between two readings.
func (m meter) row(t testing.TB, before, done reading, size int, what string) row {
	t.Helper()
	after := m.quiet(t)
	r := row{
		size: size, what: what, started: before.at, wall: done.at.Sub(before.at),
		server: after.server.CPU - before.server.CPU,
		calls:  m.proxy.since(before.mark),
		work:   done.work,
	}
	r.noise = noise(before, done)
	if m.client != 0 {
		r.client, r.peak = after.client.CPU-before.client.CPU, usageOf(t, m.client).Peak
	}
	fmt.Fprintf(os.Stderr, columns, r.cells()...)
	return r
}

// noise returns the share of the processors that other processes used between two readings. It is 0 if
// the time is too short for the clock ticks of the kernel.
func noise(before, after reading) float64 {
	const least = 200 * time.Millisecond
	between := after.at.Sub(before.at)
	if between < least {
		return 0
	}
	return (after.others - before.others).Seconds() / between.Seconds() / float64(runtime.NumCPU())
}
