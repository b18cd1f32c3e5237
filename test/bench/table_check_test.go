package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/usage"
)

func TestFastest(t *testing.T) {
	got := fastest([]row{{what: "b", wall: 2}, {what: "a", wall: 1}, {what: "c", wall: 3}})
	if got.what != "a" || got.wall != 1 || got.slowest != 3 {
		t.Errorf("got %s with %d to %d", got.what, got.wall, got.slowest)
	}
}

func TestIsEnough(t *testing.T) {
	for name, tc := range map[string]struct {
		n     int
		walls []time.Duration
		want  bool
	}{
		"One":      {50, []time.Duration{100}, false},
		"TwoAlike": {50, []time.Duration{100, 114}, true},
		"TwoApart": {50, []time.Duration{100, 116}, false},
		"TwoOf500": {500, []time.Duration{100, 200}, true},
		"OneOf500": {500, []time.Duration{100}, false},
		"Four":     {50, []time.Duration{100, 200, 300, 400}, true},
		"Large":    {1000, []time.Duration{100}, true},
	} {
		var floors []row
		for _, wall := range tc.walls {
			floors = append(floors, row{wall: wall * time.Second})
		}
		if got := isEnough(tc.n, floors); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestGoals(t *testing.T) {
	post := call{verb: verbPost, group: "apiextensions.k8s.io", resource: "customresourcedefinitions"}
	list := call{verb: verbList, group: "apiextensions.k8s.io", resource: "customresourcedefinitions"}
	page := list
	page.page = true
	status := call{verb: verbPut, group: "pkg.crossplane.io", resource: "providers", name: "bench-b01"}
	times := func(c call, n int) (out calls) {
		for range n {
			out = append(out, c)
		}
		return out
	}
	b := bundle{tag: "b01"}
	floor := row{wall: 100 * time.Second, server: 100 * time.Second}
	cases := map[string]struct {
		goals []goal
		want  []bool
	}{
		"FreshMet": {installGoals(
			row{wall: 119 * time.Second, server: 109 * time.Second, calls: times(post, 110)}, floor, row{wall: 10 * time.Second},
			100,
		), []bool{true, true, true, true, true}},
		"FreshMissed": {installGoals(row{
			wall: 121 * time.Second, server: 111 * time.Second, calls: append(times(post, 111), times(status, 21)...),
			peak: 151 << 20,
		}, floor, row{wall: 10 * time.Second}, 100), []bool{false, false, false, false, false}},
		"Unchanged": {
			unchangedGoals(row{calls: append(calls{list, page, {verb: verbWatch}}, times(call{verb: verbGet}, 9)...)}),
			[]bool{true, true},
		},
		"ElevenCalls": {unchangedGoals(row{calls: times(list, 11)}), []bool{false, true}},
		"OneWrite":    {unchangedGoals(row{calls: calls{status}, peak: 151 << 20}), []bool{false, false}},
		"Undisturbed": {
			untouchedGoals(row{calls: calls{{verb: verbGet}, {verb: verbPut, resource: "locks", name: "lock"}}}, b),
			[]bool{true, true},
		},
		"Disturbed": {untouchedGoals(row{calls: calls{status}}, b), []bool{false, true}},
		"UpgradeOfATenth": {upgradeGoals(
			row{calls: times(post, 11), wall: time.Second, server: time.Second},
			row{wall: 7 * time.Second, server: 7 * time.Second}, 10,
		), []bool{true, true, true, true}},
		"UpgradeOfAll": {upgradeGoals(
			row{calls: times(post, 110), wall: 2 * time.Second, server: 2 * time.Second},
			row{wall: 7 * time.Second, server: 7 * time.Second}, 10,
		), []bool{false, false, false, true}},
		"Removal": {
			deletionGoals(row{calls: times(post, 100), wall: 110 * time.Second, server: 110 * time.Second}, floor, 100),
			[]bool{true, true, true, true, true},
		},
		"RemovalMissed": {deletionGoals(
			row{calls: append(times(list, 5), times(post, 101)...), wall: 111 * time.Second, server: 111 * time.Second}, floor,
			100,
		), []bool{false, false, false, false, true}},
	}
	for name, tc := range cases {
		var got []bool
		for _, g := range tc.goals {
			got = append(got, g.met)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, tc.goals, diff)
		}
	}
}

// A time is compared as if the processors had had the same speed.
func TestRatio(t *testing.T) {
	floor, r := row{work: time.Millisecond, server: 10 * time.Second},
		row{work: 2 * time.Millisecond, server: 22 * time.Second}
	if got := r.ratio(r.server, floor, floor.server); got != 1.1 {
		t.Errorf("at half the speed, the ratio of %s to %s is %.2f, want 1.1", r.server, floor.server, got)
	}
	r.work = 0
	if got := r.ratio(r.server, floor, floor.server); got != 2.2 {
		t.Errorf("at an unknown speed, the ratio is %.2f, want 2.2", got)
	}
}

func TestSpeedIsMeasured(t *testing.T) {
	if _, err := usage.Thread(); err != nil {
		t.Skip(err)
	}
	if stop := measureSpeed(t); stop() <= 0 {
		t.Error("the fixed work takes no time")
	}
}

func TestPrintTable(t *testing.T) {
	var out strings.Builder
	rows := []row{{
		size: 7, what: "a step", wall: 1500 * time.Millisecond, slowest: 2 * time.Second, floor: time.Second, noise: 0.25,
		work: 480 * time.Microsecond, server: 3 * time.Second,
		calls: calls{{verb: verbPost, sent: 2e6}, {verb: verbWatch}}, peak: 5 << 20, goals: []goal{
			{what: "to be quick"}, {what: "to be right", met: true}, {what: "to be sure", met: true, noise: 0.5, relative: true},
			{what: "to be early", met: true, noise: 0.5},
		},
	}}
	if err := printTable(&out, "a machine", rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\na machine\n", "× floor", "peak MiB",
		"a step                                                         7     1.5s       2s     1.50   25 %    0.48         3s           –",
		"\n    to be quick: NOT MET\n    to be right: met\n    to be sure: NOT JUDGED, other processes used 50 % of the machine\n    to be early: met\n",
		"BenchmarkComparison",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the table:\n%s", want, out.String())
		}
	}
	heads := strings.Split(out.String(), "\n")[3:5]
	if len([]rune(heads[0])) != len([]rune(heads[1])) {
		t.Errorf("the columns are not aligned with their headings:\n%s\n%s", heads[0], heads[1])
	}
}
