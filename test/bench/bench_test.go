// Package bench_test measures the package manager against the floor of the same machine in the same
// run: a bare client that creates the same objects, with the same concurrency, on the same API server
// and through the same proxy.
//
// The manager is a separate process, built from these sources, so that its resource usage can be
// measured separately.
package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/usage"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// sizesVariable selects the numbers of CRDs to install: numbers separated by commas, or "large" for
// all sizes. From a thousand on, the API server needs several gigabytes and minutes.
const sizesVariable = "XPKG_BENCH"

func sizes(b *testing.B) []int {
	b.Helper()
	list := os.Getenv(sizesVariable)
	switch list {
	case "":
		list = "50,200,500"
	case "large":
		list = "50,200,500,1000,2043"
	}
	var out []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			b.Fatalf("%s is %q: write numbers of definitions with commas between them, or \"large\"", sizesVariable, list)
		}
		out = append(out, n)
	}
	return out
}

// The floor and the install are measured alternately until the floors differ by no more than this
// factor.
const spread = 1.15

// rounds returns the minimum and maximum number of measurements. A measurement of many CRDs takes
// longer and is less affected by other work on the machine.
func rounds(n int) (least, most int) {
	switch {
	case n <= 200:
		return 2, 4
	case n < 1000:
		return 2, 2
	}
	return 1, 1
}

// isEnough reports whether the measurements of n CRDs are sufficient.
func isEnough(n int, floors []row) bool {
	least, most := rounds(n)
	best := fastest(floors)
	return len(floors) >= most || len(floors) >= least && best.slowest.Seconds() <= spread*best.wall.Seconds()
}

// BenchmarkInstall prints one table of all sizes.
func BenchmarkInstall(b *testing.B) { benchmark(b, (*suite).size) }

// BenchmarkDeletion prints one table of all sizes.
func BenchmarkDeletion(b *testing.B) { benchmark(b, (*suite).deletion) }

// benchmark measures all sizes, and prints a table.
func benchmark(b *testing.B, size func(*suite, *testing.B, [][]byte) []row) {
	b.Helper()
	dir := filepath.Join(corpus.Dir(b), largest)
	if _, err := usage.Of(os.Getpid()); err != nil {
		b.Skip(err)
	}
	s := newSuite(b)
	for b.Loop() {
		var rows []row
		for _, n := range sizes(b) {
			rows = append(rows, size(s, b, readDefinitions(b, dir, n))...)
		}
		if err := printTable(os.Stdout, machine(), rows); err != nil {
			b.Fatal(err)
		}
	}
}

// machine describes the machine and its load.
func machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return fmt.Sprintf("%d processors, %s %s/%s, load averages and processes: %s",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.TrimSpace(string(load)))
}

// suite is the environment that all measurements share.
type suite struct {
	program, registry string
	direct            client.Client
	bare              bareClient
	proxy             *proxy
	kubeconfig        string
	server            int
	bundles           int
	// serverSecret is the Secret with the certificate of external runtimes, or empty if the manager creates it.
	serverSecret string
}

func newSuite(b *testing.B) *suite {
	b.Helper()
	cfg := cluster.Start(b)
	p := newProxy(b, cfg)
	return &suite{
		program: program.Build(b), registry: cluster.Registry(b),
		direct: env.NewClient(b, cfg), bare: newBareClient(b, cfg),
		proxy: p, kubeconfig: p.kubeconfig(b), server: cluster.PID(b),
	}
}

// bundle renames CRDs to names that are new to the API server.
func (s *suite) bundle(definitions [][]byte) bundle {
	s.bundles++
	return newBundle(fmt.Sprintf("b%02d", s.bundles), definitions)
}

// size makes all measurements for one set of CRDs.
func (s *suite) size(b *testing.B, definitions [][]byte) []row {
	b.Helper()
	n := len(definitions)
	// The first measurement of a size is slower than all later ones, because the API server
	// allocates memory. It is discarded.
	s.floor(b, s.bundle(definitions))
	var floors, reads, installs, ends, after []row
	for after == nil {
		floors = append(floors, s.floor(b, s.bundle(definitions)))
		i := s.newInstall(b, s.bundle(definitions))
		reads = append(reads, i.coldRead(b))
		installs = append(installs, i.install(b))
		if isEnough(n, floors) {
			after = i.afterwards(b, installs[len(installs)-1])
		}
		ends = append(ends, i.end(b))
	}
	floor, read, install := fastest(floors), fastest(reads), fastest(installs)
	install.goals = installGoals(install, floor, read, n)
	rows := append([]row{floor, read, install}, append(after, fastest(ends))...)
	for i := range rows {
		rows[i].floor = floor.wall
	}
	return rows
}

// floor creates CRDs with the bare client, and deletes them.
func (s *suite) floor(b *testing.B, bun bundle) row {
	b.Helper()
	raw, kinds := bodies(b, bun.stream())
	c := newBareClient(b, s.proxy.config())
	m := meter{proxy: s.proxy, server: s.server}
	r := m.measure(b, len(raw), "bare client: create, until Established", func() { c.create(b, raw, kinds) })
	s.bare.remove(b, bun)
	return r
}
