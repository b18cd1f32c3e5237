package bench_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
)

// BenchmarkUp measures the time until `xpkg up` is ready, with a new data directory and with an existing one. The floor is the
// time until the control plane alone is healthy. It also reports the resident memory of both processes, including the pages of their
// programs, after the start.
func BenchmarkUp(b *testing.B) {
	xpkg, controlPlane := program.Build(b), cluster.Program(b)
	b.Setenv(child.Variable, controlPlane)
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "data")
		b.ReportMetric(milliseconds(healthy(b, controlPlane, dir)), "floor-new-ms")
		b.ReportMetric(milliseconds(healthy(b, controlPlane, dir)), "floor-ms")
		dir = filepath.Join(b.TempDir(), "data")
		b.ReportMetric(milliseconds(start(b, xpkg, dir)), "new-ms")
		stop(b, xpkg, dir)
		b.ReportMetric(milliseconds(start(b, xpkg, dir)), "ready-ms")
		b.ReportMetric(float64(memory(b, dir))/(1<<20), "MiB")
		stop(b, xpkg, dir)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Milliseconds()) }

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

// start runs `xpkg up`, and returns the time until it is ready. The control plane is stopped at the end of the benchmark at the
// latest.
func start(b *testing.B, xpkg, dir string) time.Duration {
	b.Helper()
	b.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(b.Context()), xpkg, "down", "--data-dir", dir).Run() // It has stopped, unless the benchmark failed.
	})
	begin := time.Now()
	if out, err := exec.CommandContext(b.Context(), xpkg, "up", "--detach", "--data-dir", dir, "--port", "0", "--registry-port", "0").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return time.Since(begin)
}

func stop(b *testing.B, xpkg, dir string) {
	b.Helper()
	if out, err := exec.CommandContext(b.Context(), xpkg, "down", "--data-dir", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

// memory returns the resident memory of the manager and of the control plane.
func memory(b *testing.B, dir string) int64 {
	b.Helper()
	r, err := up.Status(dir)
	if err != nil {
		b.Fatal(err)
	}
	total := int64(0)
	for _, pid := range []int{r.State.PID, r.State.ControlPlanePID} {
		total += usageOf(b, pid).Resident
	}
	return total
}
