package bench_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
)

// upRows measures the time until `xpkg up` is ready, with a new data directory and with an existing one, and its memory
// and processor time when it is idle. The floor is the time until the control plane alone is healthy.
func upRows(b *testing.B) []row {
	b.Helper()
	xpkg, controlPlane := program.Build(b), cluster.Program(b)
	b.Setenv(child.Variable, controlPlane)
	dir := filepath.Join(b.TempDir(), "bare")
	floorNew, floor := healthy(b, controlPlane, dir), healthy(b, controlPlane, dir)
	dir = filepath.Join(b.TempDir(), "data")
	created := timedRow(b, "up-new", "xpkg up: ready, new data directory", func() { start(b, xpkg, dir) })
	stop(b, xpkg, dir)
	warm := timedRow(b, "up", "xpkg up: ready, existing data directory", func() { start(b, xpkg, dir) })
	created.floor, warm.floor = floorNew, floor
	warm.goals = []goal{wallGoal(warm, 2500*time.Millisecond, "wall")}
	idle := idleRow(b, dir)
	status := statusRow(b, xpkg, dir)
	stop(b, xpkg, dir)
	return []row{created, warm, idle, status}
}

// statusRow measures `xpkg status`, which checks the health of the control plane and does not read packages.
func statusRow(b *testing.B, xpkg, dir string) row {
	b.Helper()
	var runs []row
	for range commandRuns {
		runs = append(runs, timedRow(b, "xpkg-status", "xpkg status", func() {
			if out, err := exec.CommandContext(b.Context(), xpkg, "status", "--data-dir", dir).CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		}))
	}
	r := fastest(runs)
	r.goals = []goal{wallGoal(r, 100*time.Millisecond, "wall")}
	return r
}

// timedRow measures the time and the noise of an operation.
func timedRow(b *testing.B, key, what string, do func()) row {
	b.Helper()
	before, began := machineCPU(b), time.Now()
	do()
	r := row{key: key, what: what, wall: time.Since(began)}
	// The processor time of the operation itself is unknown. It counts as noise, so that the noise is an upper bound.
	r.noise = (machineCPU(b) - before).Seconds() / r.wall.Seconds() / float64(runtime.NumCPU())
	return r
}

// idleRow measures the processes of a control plane that has no work, for a minute after it is ready.
func idleRow(b *testing.B, dir string) row {
	b.Helper()
	const most = 250e6
	r, err := up.Status(dir)
	if err != nil {
		b.Fatal(err)
	}
	pids := []int{r.State.PID, r.State.ControlPlanePID}
	sum := func() (cpu time.Duration, resident int64) {
		for _, pid := range pids {
			u := usageOf(b, pid)
			cpu, resident = cpu+u.CPU, resident+u.Resident
		}
		return cpu, resident
	}
	<-time.After(settleFor)
	before, _ := sum()
	<-time.After(idleFor)
	after, resident := sum()
	share := 100 * (after - before).Seconds() / idleFor.Seconds()
	return row{
		key: "up-idle", what: "xpkg up: one idle minute", wall: idleFor, client: after - before, peak: resident,
		goals: []goal{
			{what: fmt.Sprintf("memory at most 250 MB: %d MB", resident/1e6), met: resident <= most},
			{what: fmt.Sprintf("at most 0.5 %% of a processor: %.2f %%", share), met: share <= 0.5},
		},
	}
}

// settleFor is the time after the start until the control plane counts as idle.
const settleFor = 15 * time.Second

// healthy starts a control plane without a manager, and returns the time until it is healthy.
func healthy(b *testing.B, controlPlane, dir string) time.Duration {
	b.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	p, err := child.Start(b.Context(), child.Options{Program: controlPlane, DataDir: dir, Log: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	select {
	case <-p.Healthy():
	case <-p.Done():
		b.Fatal(p.Err())
	}
	took := time.Since(begin)
	if err := p.Stop(); err != nil {
		b.Fatal(err)
	}
	return took
}

// start runs `xpkg up` until it is ready. The control plane is stopped at the end of the benchmark at the
// latest.
func start(b *testing.B, xpkg, dir string) {
	b.Helper()
	b.Cleanup(func() {
		// It has stopped, unless the benchmark failed.
		_ = exec.CommandContext(context.WithoutCancel(b.Context()), xpkg, "down", "--data-dir", dir).Run()
	})
	if out, err := exec.CommandContext(
		b.Context(), xpkg, "up", "--detach", "--data-dir", dir, "--port", "0", "--registry-port", "0",
	).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

func stop(b *testing.B, xpkg, dir string) {
	b.Helper()
	if out, err := exec.CommandContext(b.Context(), xpkg, "down", "--data-dir", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}
