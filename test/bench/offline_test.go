package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	images "github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/testing/largecatalog"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// searchRuns is the number of runs of each search.
const searchRuns = 10

// offlineRows measure the search of the command in an index of 200,000 kinds, as whole processes without a network. The
// floor is `xpkg version`, which may take 20 ms itself: the search for a kind may take 20 ms more, and the one for
// words 150 ms as a whole process.
func offlineRows(b *testing.B) []row {
	b.Helper()
	f := newOfflineIndex(b, 1000)
	floor := f.run(b, "version")
	var rows []row
	for _, search := range []struct {
		key, what string
		args      []string
		goal      func(r row) goal
	}{
		{"exact", "--kind of 200,000 kinds", []string{"--kind", f.kind}, lookupGoal},
		{"group", "--kind and --group of 200,000 kinds", []string{"--kind", f.kind, "--group", f.group}, lookupGoal},
		{"words", "two words in 200,000 kinds", []string{"bucket", "policy"}, wordsGoal},
		{"unknown", "a misspelled word in 200,000 kinds", []string{"bukcetpolcy"}, wordsGoal},
	} {
		r := f.run(b, append([]string{"search", "--offline", "--index", f.index}, search.args...)...)
		r.key, r.what, r.floor = "registry-3-"+search.key, "3 offline search: "+search.what, floor.wall
		r.goals = []goal{search.goal(r), memoryGoal(r, 100)}
		rows = append(rows, r)
	}
	return rows
}

// lookupGoal bounds the time of a search for a kind beyond the start of the program.
func lookupGoal(r row) goal {
	const most = 20 * time.Millisecond
	beyond := r.wall - r.floor
	return goal{what: fmt.Sprintf(
		"beyond `xpkg version` at most %s: %s, as a process: %s", round(most), round(beyond), round(r.wall),
	), met: beyond <= most, noise: r.noise}
}

// wordsGoal bounds the time of a search for words as a whole process.
func wordsGoal(r row) goal { return wallGoal(r, 150*time.Millisecond, "wall of the process") }

// offlineIndex is an index in the cache of commands, whose registry has ended.
type offlineIndex struct {
	program, index string
	// kind and group are those of a kind in the middle of the index.
	kind, group string
	env         []string
}

// newOfflineIndex publishes a catalog, and lets a search read it once.
func newOfflineIndex(b *testing.B, packages int) *offlineIndex {
	b.Helper()
	server := port.Serve(b, images.New(images.Logger(log.New(io.Discard, "", 0))))
	home := b.TempDir()
	f := &offlineIndex{
		program: program.Build(b), index: strings.TrimPrefix(server.URL, "http://") + "/index:main",
		env: append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "XDG_CONFIG_HOME="+home),
	}
	c := largecatalog.Build(b, packages)
	middle := &c.Kinds[len(c.Kinds)/2]
	f.kind, f.group = middle.Kind, middle.Group
	image, _, err := (&indexer.Publishing{Catalog: *c, Created: time.Unix(1, 0)}).Encode()
	if err != nil {
		b.Fatal(err)
	}
	client := remote.New(remote.Options{})
	defer client.Close()
	if err := indexer.Publish(b.Context(), client, oci.MustParseReference(f.index), &image, nil); err != nil {
		b.Fatal(err)
	}
	f.start(b, "search", "--index", f.index, "--kind", f.kind)
	server.Close()
	return f
}

// run runs a command several times, and returns the fastest run with the largest peak of memory.
func (f *offlineIndex) run(b *testing.B, args ...string) row {
	b.Helper()
	var runs []row
	var peak int64
	before, began, own := machineCPU(b), time.Now(), time.Duration(0)
	for range searchRuns {
		r := f.start(b, args...)
		runs, peak, own = append(runs, r), max(peak, r.peak), own+r.client
	}
	r := fastest(runs)
	r.peak = peak
	r.noise = max(0, (machineCPU(b)-before-own).Seconds()/time.Since(began).Seconds()/float64(runtime.NumCPU()))
	return r
}

// start runs a command once. A search may find nothing.
func (f *offlineIndex) start(b *testing.B, args ...string) row {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], append([]string{f.program}, args...)...)
	cmd.Env = append(f.env, measureVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "error: NothingFound:") {
		b.Fatal(fmt.Errorf("%s: %w\n%s", cmd, err, out))
	}
	var wall, used, peak int64
	line := out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:]
	if _, err := fmt.Sscan(string(line), &wall, &used, &peak); err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return row{wall: time.Duration(wall), client: time.Duration(used), peak: peak}
}

// measureVariable makes the test binary run a command and print its time, its processor time and its peak memory. Linux
// counts the memory of the process that starts a command as memory of the command, so that process has to be small.
const measureVariable = "XPKG_MEASURE"

// measure runs a command, and returns its exit code.
func measure(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if cmd.ProcessState == nil {
		fmt.Println(err)
		return 1
	}
	var peak int64
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = usage.Maxrss << 10
	}
	fmt.Println(took.Nanoseconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Nanoseconds(), peak)
	return cmd.ProcessState.ExitCode()
}
