package bench_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// solverRows measures the solver alone. Its problems have no floor.
func solverRows(b *testing.B) []row {
	b.Helper()
	r := runBenchmarks(b, "pkg/solver", "^(BenchmarkBacktracking|BenchmarkAdversary|BenchmarkWorstExplanation)$", "1s")
	hard := r.row(b, "solver: 100 packages of 200 versions, backtracking", "Backtracking", "ns/op", "")
	hard.goals = []goal{wallGoal(hard, 5*time.Millisecond, "wall")}
	many := runBenchmarks(b, "pkg/solver", "^BenchmarkSizes$/^10000$", "1s").
		row(b, "solver: 10,000 packages", "Sizes/10000", "ns/op", "")
	many.goals = []goal{wallGoal(many, 250*time.Millisecond, "wall")}
	stopped := r.row(b, "solver: a search that the budget ends", "Adversary", "ns/op", "")
	stopped.goals = []goal{wallGoal(stopped, time.Second, "wall")}
	worst := r.row(b, "solver: the worst explanation", "WorstExplanation", "ns/op", "")
	worst.goals = []goal{wallGoal(worst, time.Second, "wall")}
	return []row{hard, many, stopped, worst}
}

// readRows measures how the largest package is read. The floor is the verification of the bytes in the store.
func readRows(b *testing.B) []row {
	b.Helper()
	corpus.Dir(b)
	r := runBenchmarks(b, "pkg/xpkg", "^(BenchmarkReadCold|BenchmarkReadWarm)$", "3x")
	parse := r.row(b, "cold read of the largest package: parse", "ReadCold", "ns/op", "")
	per100 := time.Duration(float64(100*time.Second) / r.value(b, "ReadCold", "MB/s"))
	parse.goals = []goal{{
		what: fmt.Sprintf("at most 250ms for 100 MB: %s", round(per100)), met: per100 <= 250*time.Millisecond, noise: r.noise,
	}}
	whole := runBenchmarks(b, "internal/fetch", "^BenchmarkBigProvider$", "3x")
	floor := whole.row(b, "", "BigProvider/Floor", "ns/op", "")
	first := whole.row(
		b, "cold read of the largest package: verify, parse, check and store", "BigProvider/First", "ns/op", "",
	)
	first.peak = int64(whole.value(b, "BigProvider/First", "peak-MiB")) << 20
	first.goals = []goal{memoryGoal(first, 200)}
	again := whole.row(b, "warm read of the largest package", "BigProvider/Again", "ns/op", "")
	again.goals = []goal{wallGoal(again, 5*time.Millisecond, "wall")}
	first.floor, again.floor = floor.wall, floor.wall
	return []row{parse, first, again}
}

// treeRows measures the resolution of trees from a registry with 30 ms for each request. The floor is one package.
func treeRows(b *testing.B) []row {
	b.Helper()
	r := runBenchmarks(b, "pkg/resolver", "^BenchmarkDelayedRegistry$", "3x")
	const deep = "DelayedRegistry/41_packages,_10_deep"
	var rows []row
	for _, shape := range []struct{ name, unit, what string }{
		{"DelayedRegistry/41_packages,_2_deep", "ms/tree", "resolve 41 packages, two levels"},
		{deep, "ms/tree", "resolve 41 packages, ten levels, nothing is known"},
		{deep, "ms/known", "resolve 41 packages, ten levels, known from an index"},
		{deep, "ms/again", "resolve 41 packages, ten levels, resolved before"},
	} {
		tree := r.row(b, shape.what, shape.name, shape.unit, "ms/package")
		if shape.unit != "ms/tree" {
			tree.key += "/" + shape.unit
		}
		tree.goals = []goal{factorGoal(tree, 3, "one package")}
		rows = append(rows, tree)
	}
	return rows
}

// closureRows measures the install of 40 packages on two levels from the same registry. The floor is the slowest
// package.
func closureRows(b *testing.B) []row {
	b.Helper()
	r := runBenchmarks(b, filepath.Join("internal", "controller"), "^BenchmarkInstallClosure$", "2x")
	empty := r.row(b, "install 40 packages without objects, two levels", "InstallClosure/crds=0", "closure-ms", "floor-ms")
	full := r.row(
		b, "install 40 packages, one with 50 CRDs, two levels", "InstallClosure/crds=50", "closure-ms", "floor-ms",
	)
	empty.goals, full.goals = []goal{factorGoal(empty, 3, "the slowest package")},
		[]goal{factorGoal(full, 3, "the slowest package")}
	return []row{empty, full}
}
