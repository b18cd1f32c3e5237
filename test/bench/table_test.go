package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/benchresult"
)

// row is one line of the table.
type row struct {
	// group is the group of benchmarks, and key identifies the operation in the file of results.
	group, key string
	// size is the number of CRDs or packages; 0 if the row does not depend on a size.
	size    int
	what    string
	started time.Time
	wall    time.Duration
	// slowest is the longest time of all measurements, and wall the shortest.
	slowest time.Duration
	// noise is the share of the processors that other processes used.
	noise float64
	// work is the processor time of the fixed work meanwhile, which shows the speed of the processors; 0 if unknown.
	work time.Duration
	// server and client are the processor time of the API server and of the client until both are
	// idle.
	server, client time.Duration
	calls          calls
	// peak is the peak memory of the client, in bytes; 0 if unknown.
	peak  int64
	floor time.Duration
	goals []goal
}

// goal is a goal of a row.
type goal struct {
	what string
	met  bool
	// noise is the noise of the measurement if the goal depends on it.
	noise float64
	// relative means that the goal compares two measurements, of which noise can also slow down the floor alone.
	relative bool
}

func (g goal) String() string {
	switch g.result() {
	case benchresult.NotJudged:
		return fmt.Sprintf("%s: NOT JUDGED, other processes used %.0f %% of the machine", g.what, 100*g.noise)
	case benchresult.Met:
		return g.what + ": met"
	}
	return g.what + ": NOT MET"
}

// result returns the result of a goal. A goal that is met in spite of other processes is met; otherwise, noise prevents
// a judgment.
func (g goal) result() string {
	switch {
	case g.met && !g.relative:
		return benchresult.Met
	case g.noise > mostNoise:
		return benchresult.NotJudged
	case g.met:
		return benchresult.Met
	}
	return benchresult.Missed
}

// fastest returns the row with the shortest time, which other work on the machine has affected least.
func fastest(rows []row) row {
	best, slowest := rows[0], rows[0].wall
	for _, r := range rows[1:] {
		slowest = max(slowest, r.wall)
		if r.wall < best.wall {
			best = r
		}
	}
	best.slowest = slowest
	return best
}

// The columns of the table and of the table of calls.
const (
	columns = "%-58s %5s %8s %8s %8s %6s %7s %10s %11s  %5s %5s %5s %5s %5s %6s %5s  %8s %8s %8s\n"
	targets = "%-58s %5s  %19s %25s %7s %10s %6s\n"
)

// printTable writes the table, the goals of each row, and the calls of each row.
func printTable(w io.Writer, about string, rows []row) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%s\n\n", about)
	fmt.Fprintf(&out, columns, cells(
		"", "size", "wall", "slowest", "× floor", "noise", "work ms", "server CPU", "manager CPU", verbs, "MB sent", "MB got",
		"peak MiB",
	)...)
	for _, r := range rows {
		fmt.Fprintf(&out, columns, r.cells()...)
		for _, g := range r.goals {
			fmt.Fprintf(&out, "    %s\n", g)
		}
	}
	fmt.Fprintf(&out, "\nWhat the calls of each row are about, without watches:\n\n")
	fmt.Fprintf(&out, targets, cells("", "size", abouts)...)
	for _, r := range rows {
		if r.calls.requests() > 0 {
			fmt.Fprintf(&out, targets, r.destinations()...)
			fmt.Fprintf(&out, "    %s\n", r.calls.kinds())
		}
	}
	out.WriteString(footnotes)
	_, err := out.WriteTo(w)
	return err
}

// cells joins cells and lists of cells to one row.
func cells(all ...any) []any {
	var out []any
	for _, one := range all {
		if list, ok := one.([]string); ok {
			for _, s := range list {
				out = append(out, s)
			}
			continue
		}
		out = append(out, one)
	}
	return out
}

const footnotes = `
wall: until everything asked for is so; the fastest of all rounds, beside it the slowest. For a reconcile in which nothing
  changed, until the manager's last call.
noise: the part of the machine's processors that other processes used meanwhile; where it is large, compare CPU and not wall.
work: the processor time of a fixed piece of work meanwhile: twice as much means that the processors were half as fast, for example
  because other machines used the same cores. Goals compare times at the same speed.
CPU: of the whole process, from the start until it is quiet again.
calls: of the client; a list that is read in pages counts in LIST for each page, and once for a goal. MB are bodies, as sent.
Crossplane core is measured by BenchmarkComparison.
`

func (r row) cells() []any {
	perVerb := make([]string, len(verbs))
	for i, verb := range verbs {
		n := r.calls.verb(verb)
		perVerb[i] = dash(n > 0, n)
	}
	sent, received := r.calls.bytes()
	return cells(
		r.what, dash(r.size > 0, r.size), round(r.wall).String(), dash(r.slowest > r.wall, round(r.slowest)),
		dash(r.floor > 0, fmt.Sprintf("%.2f", r.wall.Seconds()/r.floor.Seconds())),
		dash(r.noise >= 0.005, fmt.Sprintf("%.0f %%", 100*r.noise)),
		dash(r.work > 0, fmt.Sprintf("%.2f", r.work.Seconds()*1000)), dash(r.server > 0, round(r.server)),
		dash(r.client > 0, round(r.client)), perVerb,
		dash(sent > 0, fmt.Sprintf("%.2f", float64(sent)/1e6)),
		dash(received > 0, fmt.Sprintf("%.2f", float64(received)/1e6)),
		dash(r.peak > 0, r.peak>>20),
	)
}

func (r row) destinations() []any {
	perTarget := make([]string, len(abouts))
	for i, about := range abouts {
		n := r.calls.count(func(c call) bool { return c.verb != verbWatch && c.about() == about })
		perTarget[i] = dash(n > 0, n)
	}
	return cells(r.what, dash(r.size > 0, r.size), perTarget)
}

// dash returns a value, or a dash if it is zero.
func dash(nonzero bool, value any) string {
	if !nonzero {
		return "–"
	}
	return fmt.Sprint(value)
}

// round rounds a duration to 10 ms, or to 10 µs if it is short.
func round(d time.Duration) time.Duration {
	if d < 100*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(10 * time.Millisecond)
}

// result returns the row for the file of results.
func (r row) result() benchresult.Row {
	out := benchresult.Row{
		Group: r.group, Key: r.key, Size: r.size, What: r.what,
		Seconds: seconds(r.wall), Floor: seconds(r.floor), Server: seconds(r.server), Client: seconds(r.client),
		Writes: r.calls.writes(), Requests: r.calls.requests(), PeakMiB: r.peak >> 20, Noise: math.Round(100*r.noise) / 100,
		WorkMillis: math.Round(r.work.Seconds()*1e5) / 100,
	}
	for _, g := range r.goals {
		out.Goals = append(out.Goals, benchresult.Goal{What: g.what, Result: g.result()})
	}
	return out
}

// seconds returns a duration in seconds, rounded like the table.
func seconds(d time.Duration) float64 { return round(d).Seconds() }
