package bench_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/usage"
)

// root is the folder of the repository.
const root = "../.."

// benchmarks are the results of the benchmarks of another package: the values by their units, by the names of the
// benchmarks.
type benchmarks struct {
	values map[string]map[string]float64
	noise  float64
}

// runBenchmarks runs benchmarks of another package in a process of its own. They are compiled before the time is
// measured.
func runBenchmarks(b *testing.B, pkg, pattern, benchtime string) benchmarks {
	b.Helper()
	program := filepath.Join(b.TempDir(), "bench.test")
	compile := exec.CommandContext(b.Context(), "go", "test", "-c", "-o", program, "./"+pkg)
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		b.Fatalf("go test -c ./%s: %v\n%s", pkg, err, out)
	}
	cmd := exec.CommandContext(
		b.Context(), program, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", benchtime, "-test.benchmem",
	)
	cmd.Dir = filepath.Join(root, pkg)
	out, noise, err := runAlone(b, cmd)
	if err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	values := parseBenchmarks(out)
	if len(values) == 0 {
		b.Fatalf("%s printed no result:\n%s", cmd, out)
	}
	return benchmarks{values: values, noise: noise}
}

// runAlone runs a command and the processes that it starts, and returns the output and the part of the processors that
// other processes used.
func runAlone(b *testing.B, cmd *exec.Cmd) (out []byte, noise float64, err error) {
	b.Helper()
	before, began, own := machineCPU(b), time.Now(), usageOf(b, os.Getpid()).CPU
	out, cpu, err := usage.Run(cmd)
	others := machineCPU(b) - before - (usageOf(b, os.Getpid()).CPU - own) - cpu
	return out, max(0, others.Seconds()/time.Since(began).Seconds()/float64(runtime.NumCPU())), err
}

func machineCPU(b *testing.B) time.Duration {
	b.Helper()
	busy, err := usage.Machine()
	if err != nil {
		b.Fatal(err)
	}
	return busy
}

// benchmarkLine matches a result: the name without the number of processors, the number of iterations, and the values.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// parseBenchmarks parses the output of benchmarks (golang.org/design/14313-benchmark-format).
func parseBenchmarks(out []byte) map[string]map[string]float64 {
	found := map[string]map[string]float64{}
	for line := range bytes.Lines(out) {
		match := benchmarkLine.FindSubmatch(bytes.TrimSpace(line))
		if match == nil {
			continue
		}
		values := map[string]float64{}
		fields := strings.Fields(string(match[2]))
		for i := 0; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				values[fields[i+1]] = value
			}
		}
		found[string(match[1])] = values
	}
	return found
}

// value returns a value of a benchmark.
func (r benchmarks) value(b *testing.B, name, unit string) float64 {
	b.Helper()
	value, ok := r.values[name][unit]
	if !ok {
		b.Fatalf("the benchmark %s has no %s: %v", name, unit, r.values)
	}
	return value
}

// row returns a row with the value of a benchmark, which is a time in a unit, and its floor if floorUnit is not empty.
func (r benchmarks) row(b *testing.B, what, name, unit, floorUnit string) row {
	b.Helper()
	times := map[string]time.Duration{"ns/op": time.Nanosecond, "s": time.Second}
	read := func(unit string) time.Duration {
		scale, ok := times[unit]
		if !ok {
			scale = time.Millisecond
		}
		return time.Duration(r.value(b, name, unit) * float64(scale))
	}
	out := row{key: name, what: what, wall: read(unit), noise: r.noise}
	if floorUnit != "" {
		out.floor = read(floorUnit)
	}
	return out
}

func TestBenchmarkOutputIsParsed(t *testing.T) {
	out := "goos: linux\nBenchmarkA/9_packages,_2_deep-2 \t 2\t 240.0 ms/floor\t 29.00 requests/op\nBenchmarkB-16   81  13978350 ns/op\n--- BENCH: x\nPASS\n"
	got := fmt.Sprint(parseBenchmarks([]byte(out)))
	if want := "map[A/9_packages,_2_deep:map[ms/floor:240 requests/op:29] B:map[ns/op:1.397835e+07]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
