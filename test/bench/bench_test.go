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
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xpkg-dev/xpkg/internal/testing/benchresult"
	"github.com/xpkg-dev/xpkg/internal/testing/usage"
)

func TestMain(m *testing.M) {
	if os.Getenv(measureVariable) != "" {
		os.Exit(measure(os.Args[1:]))
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// sizesVariable selects the numbers of CRDs to install: numbers separated by commas, or "large" for
// all sizes. From a thousand on, the API server needs several gigabytes and minutes.
const sizesVariable = "XPKG_BENCH"

// resultsVariable is the path of a file to which the results are added. The picture of the documentation is drawn from
// it.
const resultsVariable = "XPKG_BENCH_RESULTS"

func sizes(b *testing.B) []int {
	b.Helper()
	list := os.Getenv(sizesVariable)
	switch list {
	case "":
		list = "100,500"
	case "large":
		list = "100,500,1000,2043"
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

// group is a group of measurements. All groups print one table.
type group struct {
	name    string
	measure func(b *testing.B) []row
}

func groups(b *testing.B) []group {
	all := []group{
		{"solver", solverRows}, {"read", readRows}, {"tree", treeRows}, {"closure", closureRows},
		{"commands", commandRows}, {"up", upRows}, {"build", buildRows},
		// One name for each, so that a failure of one does not lose the others.
		{"registry", registryRows}, {"registryrebuild", rebuildRows}, {"registrysearch", serverSearchRows},
		{"registryfreshness", freshnessRows},
		{"registryoffline", offlineRows}, {"kindsknown", knownRows},
	}
	for _, n := range sizes(b) {
		all = append(all, group{fmt.Sprintf("kinds-%d", n), func(b *testing.B) []row { return kindsRows(b, n) }})
		all = append(all, group{fmt.Sprintf("crds-%d", n), func(b *testing.B) []row { return sizeRows(b, n) }})
	}
	return all
}

// BenchmarkGoals measures every goal of performance, each with its floor in the same run, and prints one table.
func BenchmarkGoals(b *testing.B) {
	if _, err := usage.Of(os.Getpid()); err != nil {
		b.Skip(err)
	}
	var rows []row
	for _, g := range groups(b) {
		b.Run(g.name, func(b *testing.B) {
			for b.Loop() {
				measured := g.measure(b)
				for i := range measured {
					measured[i].group, _, _ = strings.Cut(g.name, "-")
				}
				rows = append(rows, measured...)
				keep(b, measured)
			}
		})
	}
	if err := printTable(os.Stdout, machine(), rows); err != nil {
		b.Fatal(err)
	}
}

// keep adds the results to the file of XPKG_BENCH_RESULTS, so that a later failure does not lose them.
func keep(b *testing.B, rows []row) {
	b.Helper()
	path := os.Getenv(resultsVariable)
	if path == "" || len(rows) == 0 {
		return
	}
	old, err := benchresult.Read(path)
	if err != nil {
		b.Fatal(err)
	}
	var results []benchresult.Row
	for _, r := range rows {
		results = append(results, r.result())
	}
	if err := benchresult.Write(path, benchresult.Replace(old, results)); err != nil {
		b.Fatal(err)
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
	direct            client.WithWatch
	bare              bareClient
	proxy             *proxy
	kubeconfig        string
	server            int
	bundles           int
	// serverSecret is the Secret with the certificate of external runtimes, or empty if the manager creates it.
	serverSecret string
}

// bundle renames CRDs to names that are new to the API server.
func (s *suite) bundle(definitions [][]byte) bundle {
	s.bundles++
	return newBundle(fmt.Sprintf("b%02d", s.bundles), definitions)
}
