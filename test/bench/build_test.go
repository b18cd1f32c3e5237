package bench_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// buildVariable enables the measurement of the first build, which compiles Kubernetes.
const buildVariable = "XPKG_BENCH_BUILD"

// buildRows measures the first build of each program, one after the other from an empty build cache. Later programs
// reuse the packages of earlier ones. Its processor time depends little on the load of the machine.
func buildRows(b *testing.B) []row {
	b.Helper()
	if os.Getenv(buildVariable) == "" {
		return nil
	}
	cache, out := b.TempDir(), b.TempDir()
	var rows []row
	for _, part := range []struct{ name, target string }{
		{"xpkg", "build-xpkg"}, {"control plane", "build-controlplane"}, {"kubectl", "build-kubectl"},
	} {
		cmd := exec.CommandContext(b.Context(), "make", part.target, "BIN="+out)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(cache, "go"), "GOFLAGS=-buildvcs=false")
		before, began := machineCPU(b), time.Now()
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", cmd, err, text)
		}
		r := row{key: part.target, what: "first build: " +
			part.name, wall: time.Since(began), client: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
		r.noise = (machineCPU(b) - before - r.client).Seconds() / r.wall.Seconds() / float64(runtime.NumCPU())
		rows = append(rows, r)
	}
	return rows
}
