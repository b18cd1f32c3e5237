package bench_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// commandRuns is the number of runs of each command.
const commandRuns = 15

// commandRows measures 200 packages, and commands that read them, from start to exit. The floor of a command is `xpkg
// version` and a client that lists the same objects.
func commandRows(b *testing.B) []row {
	b.Helper()
	executable := program.Build(b)
	rows, f, stop := manyRows(b, executable)
	defer stop()
	version := f.command(b, "version")
	version.goals = []goal{wallGoal(version, 20*time.Millisecond, "wall")}
	rows = append(rows, version)
	floor := version.wall + f.listFloor(b)
	for _, name := range []string{"list", "tree"} {
		r := f.command(b, name)
		r.floor, r.goals = floor, []goal{wallGoal(r, 100*time.Millisecond, "wall")}
		rows = append(rows, r)
	}
	f.manager.Stop(b)
	return rows
}

// command runs a command several times, and returns the fastest run. The last run is counted by the proxy.
func (f *fleet) command(b *testing.B, name string) row {
	b.Helper()
	f.meter().quiet(b)
	var runs []row
	var mark int
	first, own := f.meter().read(b), time.Duration(0)
	for range commandRuns {
		mark = f.proxy.mark()
		cmd := exec.CommandContext(b.Context(), f.program, name)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
		before := f.meter().read(b)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		after := f.meter().read(b)
		r := row{key: "xpkg-" + name, size: manyPackages, what: "xpkg " +
			name, wall: after.at.Sub(before.at), client: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
		runs, own = append(runs, r), own+r.client
	}
	// One run is too short to measure its noise.
	all := f.meter().read(b)
	all.others -= own
	r := fastest(runs)
	r.noise = noise(first, all)
	r.calls = f.proxy.since(mark)
	return r
}

// listFloor returns the time in which a new client lists the packages and reads the Lock.
func (f *fleet) listFloor(b *testing.B) time.Duration {
	b.Helper()
	best := limit
	for range commandRuns {
		c, began := newBareClient(b, f.proxy.config()), time.Now()
		var lists errgroup.Group
		for _, resource := range []string{"v1/providers", "v1/configurations", "v1/functions", "v1beta1/locks"} {
			lists.Go(func() error {
				return c.call(b.Context(), "GET", "/apis/pkg.crossplane.io/"+resource, "application/json", nil, nil)
			})
		}
		if err := lists.Wait(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	return best
}
