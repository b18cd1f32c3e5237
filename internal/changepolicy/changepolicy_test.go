package changepolicy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
)

func window(days, from, duration string, week ...int32) v1alpha1.ChangeWindow {
	w := v1alpha1.ChangeWindow{From: from}
	for d := range strings.FieldsSeq(days) {
		w.Days = append(w.Days, v1alpha1.Weekday(d))
	}
	if len(week) > 0 {
		w.Week = &week[0]
	}
	w.Duration.Duration, _ = time.ParseDuration(duration)
	return w
}

func freeze(from, to, reason string) v1alpha1.ChangeFreeze {
	return v1alpha1.ChangeFreeze{From: metav1.NewTime(at(from)), To: metav1.NewTime(at(to)), Reason: reason}
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestOpens(t *testing.T) {
	type windows = []v1alpha1.ChangeWindow
	for name, tc := range map[string]struct {
		zone    string
		windows windows
		freezes []v1alpha1.ChangeFreeze
		now     string
		// Wants is "open", or the next time and the reason.
		want string
	}{
		"no policy":     {now: "2026-12-01T00:00:00Z", want: "open"},
		"a window":      {windows: windows{window("Tue", "08:00", "1h")}, now: "2026-12-01T08:00:00Z", want: "open"},
		"its last time": {windows: windows{window("Tue", "08:00", "1h")}, now: "2026-12-01T08:59:59Z", want: "open"},
		"its end": {
			windows: windows{window("Tue", "08:00", "1h")}, now: "2026-12-01T09:00:00Z",
			want: "Tue 8 Dec 2026 08:00 UTC, no window for changes is open",
		},
		"a time zone": {
			zone: "Europe/Berlin", windows: windows{window("Sat Sun", "22:00", "4h")}, now: "2026-12-01T12:00:00Z",
			want: "Sat 5 Dec 2026 22:00 CET, no window for changes is open",
		},
		"after midnight": {
			zone: "Europe/Berlin", windows: windows{window("Sat", "22:00", "4h")}, now: "2026-12-06T00:59:00Z", want: "open",
		},
		"after its end": {
			zone: "Europe/Berlin", windows: windows{window("Sat", "22:00", "4h")}, now: "2026-12-06T01:00:00Z",
			want: "Sat 12 Dec 2026 22:00 CET, no window for changes is open",
		},
		"the second Tuesday": {
			windows: windows{window("Tue", "", "1h", 2)}, now: "2026-12-01T00:00:00Z",
			want: "Tue 8 Dec 2026 00:00 UTC, no window for changes is open",
		},
		"the fifth Monday": {
			windows: windows{window("Mon", "10:00", "1h", 5)}, now: "2026-12-01T00:00:00Z",
			want: "Mon 29 Mar 2027 10:00 UTC, no window for changes is open",
		},
		"the last Friday": {
			windows: windows{window("Fri", "10:00", "1h", -1)}, now: "2027-02-01T00:00:00Z",
			want: "Fri 26 Feb 2027 10:00 UTC, no window for changes is open",
		},
		"windows that overlap": {
			windows: windows{window("", "08:00", "2h"), window("", "09:00", "3h")}, now: "2026-12-01T11:00:00Z", want: "open",
		},
		"a time that the clocks skip": { // 02:00 CET is 03:00 CEST.
			zone: "Europe/Berlin", windows: windows{window("", "02:30", "1h")}, now: "2027-03-28T00:30:00Z",
			want: "Sun 28 Mar 2027 03:00 CEST, no window for changes is open",
		},
		"a time that occurs twice": {
			zone: "Europe/Berlin", windows: windows{window("", "02:30", "30m")}, now: "2027-10-31T00:00:00Z",
			want: "Sun 31 Oct 2027 02:30 CEST, no window for changes is open",
		},
		"the second time": {
			zone: "Europe/Berlin", windows: windows{window("", "02:30", "30m")}, now: "2027-10-31T01:30:00Z",
			want: "Mon 1 Nov 2027 02:30 CET, no window for changes is open",
		},
		"a window takes its time while the clocks change": {
			zone: "Europe/Berlin", windows: windows{window("", "00:00", "4h")}, now: "2027-03-28T02:59:00Z", want: "open",
		},
		"a day that does not exist": {
			zone: "Pacific/Apia", windows: windows{window("Fri", "10:00", "1h")}, now: "2011-12-30T08:00:00Z",
			want: "Fri 6 Jan 2012 10:00 +14, no window for changes is open",
		},
		"a freeze": {
			freezes: []v1alpha1.ChangeFreeze{freeze("2026-12-20T00:00:00Z", "2027-01-05T00:00:00Z", "end of year")},
			now:     "2026-12-20T00:00:00Z", want: "Tue 5 Jan 2027 00:00 UTC, changes are frozen: end of year",
		},
		"the end of a freeze": {
			freezes: []v1alpha1.ChangeFreeze{freeze("2026-12-20T00:00:00Z", "2027-01-05T00:00:00Z", "")},
			now:     "2027-01-05T00:00:00Z", want: "open",
		},
		"a freeze ends in a window": {
			windows: windows{window("Tue", "08:00", "4h")},
			freezes: []v1alpha1.ChangeFreeze{freeze("2026-12-01T00:00:00Z", "2026-12-01T09:30:00Z", "")},
			now:     "2026-12-01T08:30:00Z", want: "Tue 1 Dec 2026 09:30 UTC, changes are frozen",
		},
		"freezes that follow each other cover windows": {
			windows: windows{window("Tue", "08:00", "1h")},
			freezes: []v1alpha1.ChangeFreeze{
				freeze("2026-12-08T00:00:00Z", "2026-12-15T00:00:00Z", ""), freeze("2026-12-14T00:00:00Z", "2026-12-16T00:00:00Z", ""),
			},
			now: "2026-12-02T00:00:00Z", want: "Tue 22 Dec 2026 08:00 UTC, no window for changes is open",
		},
		"an unknown time zone": {zone: "Europe/Berlim", now: "2026-12-01T00:00:00Z", want: "the time zone Europe/Berlim does not exist"},
		"the machine":          {zone: "Local", now: "2026-12-01T00:00:00Z", want: "the time zone Local does not exist"},
	} {
		p := v1alpha1.ChangePolicySpec{TimeZone: tc.zone, Windows: tc.windows, Freezes: tc.freezes}
		if got := describe(changepolicy.Opens(p, at(tc.now))); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func describe(open bool, next time.Time, why string, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case open:
		return "open"
	case next.IsZero():
		return "never, " + why
	}
	return changepolicy.Format(next) + ", " + why
}

// A policy without an end of its freezes before the last window has no time at all.
func TestOpensAtNoTime(t *testing.T) {
	p := v1alpha1.ChangePolicySpec{
		Windows: []v1alpha1.ChangeWindow{window("Mon", "", "1m", 5)},
	}
	for year := range 40 { // Each fifth Monday is frozen; the search ends.
		p.Freezes = append(p.Freezes, freeze(fmt.Sprintf("%d-01-01T00:00:00Z", 2026+year), fmt.Sprintf("%d-01-01T00:00:00Z", 2027+year), ""))
	}
	open, next, _, err := changepolicy.Opens(p, at("2026-06-01T00:00:00Z"))
	if open || err != nil || next.Before(at("2066-01-01T00:00:00Z")) || next.After(at("2066-07-01T00:00:00Z")) {
		t.Errorf("got %t, %s, %v", open, next, err)
	}
}

// Random policies open and close at exactly the minutes at which clocks on the wall do.
func TestOpensLikeClocksOnTheWall(t *testing.T) {
	zones := []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Asuncion",
		"Pacific/Apia", "America/St_Johns", "Africa/Casablanca",
	}
	days := []v1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		zone := zones[n%len(zones)]
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Date(2011+random.IntN(18), time.Month(1+random.IntN(12)), 1+random.IntN(28), 0, 0, 0, 0, time.UTC)
		if n%2 == 0 { // Near a change of the clocks.
			if _, end := begin.In(location).ZoneBounds(); !end.IsZero() {
				begin = end.Add(-3 * 24 * time.Hour).UTC().Truncate(time.Minute)
			}
		}
		p := v1alpha1.ChangePolicySpec{TimeZone: zone}
		for range 1 + random.IntN(3) {
			w := v1alpha1.ChangeWindow{From: fmt.Sprintf("%02d:%02d", random.IntN(24), random.IntN(60))}
			if random.IntN(3) > 0 {
				w.From = fmt.Sprintf("%02d:%02d", random.IntN(4), random.IntN(60))
			}
			w.Duration.Duration = time.Duration(1+random.IntN(60*30)) * time.Minute
			for _, i := range random.Perm(7)[:random.IntN(5)] {
				w.Days = append(w.Days, days[i])
			}
			if len(w.Days) > 0 && random.IntN(2) == 0 {
				w.Week = new([]int32{-1, 1, 2, 3, 4, 5}[random.IntN(6)])
			}
			p.Windows = append(p.Windows, w)
		}
		for range random.IntN(3) {
			from := begin.Add(time.Duration(random.IntN(8*24*60)) * time.Minute)
			to := from.Add(time.Duration(1+random.IntN(3*24*60)) * time.Minute)
			p.Freezes = append(p.Freezes, v1alpha1.ChangeFreeze{From: metav1.NewTime(from), To: metav1.NewTime(to)})
		}
		const minutes = 8 * 24 * 60
		reference := referenceOf(p, location, begin, minutes)
		next := -1
		for i := minutes - 1; i >= 0; i-- {
			if reference[i] {
				next = i
			}
			if i%7 != 0 && i > 0 && i < minutes-1 && reference[i] == reference[i-1] && reference[i] == reference[i+1] {
				continue // The minutes beside each change, and some others.
			}
			now := begin.Add(time.Duration(i) * time.Minute)
			open, opens, _, err := changepolicy.Opens(p, now)
			if err != nil || open != reference[i] {
				t.Fatalf("%+v at %s: open %t, %v", p, now.In(location), open, err)
			}
			if want := begin.Add(time.Duration(next) * time.Minute); !open && next >= 0 && !opens.Equal(want) {
				t.Fatalf("%+v at %s: opens at %s, want %s", p, now.In(location), opens, want.In(location))
			}
			if !open && next < 0 && opens.Before(begin.Add(minutes*time.Minute)) {
				t.Fatalf("%+v at %s: opens at %s", p, now.In(location), opens)
			}
		}
	}
}

// referenceOf returns for each minute whether a transaction may start, by looking at the clock on the wall at each
// minute from ten days before.
func referenceOf(p v1alpha1.ChangePolicySpec, zone *time.Location, begin time.Time, minutes int) []bool {
	out := make([]bool, minutes)
	const before = 10 * 24 * 60
	for _, w := range p.Windows {
		opened, last := "", ""
		for i := -before; i < minutes; i++ {
			wall := begin.Add(time.Duration(i) * time.Minute).In(zone)
			date := wall.Format(time.DateOnly)
			if last == "" {
				last = date // The first day is incomplete.
			}
			if date == last || date == opened || wall.Format("15:04") < w.From || !opensOn(w, wall) {
				continue
			}
			opened = date
			for m := range int(w.Duration.Minutes()) {
				if at := i + m; at >= 0 && at < minutes {
					out[at] = true
				}
			}
		}
	}
	for i := range out {
		now := begin.Add(time.Duration(i) * time.Minute)
		for _, f := range p.Freezes {
			if !now.Before(f.From.Time) && now.Before(f.To.Time) {
				out[i] = false
			}
		}
	}
	return out
}

// opensOn reports whether a window opens on the day of a wall clock.
func opensOn(w v1alpha1.ChangeWindow, wall time.Time) bool {
	if len(w.Days) > 0 && !slices.Contains(w.Days, v1alpha1.Weekday(wall.Format("Mon"))) {
		return false
	}
	if w.Week == nil {
		return true
	}
	var same []int // The days of the month with this weekday.
	for day := 1; day <= 31; day++ {
		d := time.Date(wall.Year(), wall.Month(), day, 0, 0, 0, 0, time.UTC)
		if d.Month() == wall.Month() && d.Weekday() == wall.Weekday() {
			same = append(same, day)
		}
	}
	n := int(*w.Week)
	if n < 0 {
		n = len(same)
	}
	return n <= len(same) && same[n-1] == wall.Day()
}

func TestNeeds(t *testing.T) {
	type approvals = []v1alpha1.NeededApproval
	breaking, permissions, removal := v1alpha1.BreakingChange, v1alpha1.PermissionsChange, v1alpha1.RemovalChange
	classes := func(c ...v1alpha1.ChangeClass) []v1alpha1.ChangeClass { return c }
	for name, tc := range map[string]struct {
		approvals approvals
		facts     changepolicy.Facts
		people    int32
		reasons   string
	}{
		"nothing":      {nil, changepolicy.Facts{Breaking: true, Permissions: true, Removal: true, Objects: 9}, 0, ""},
		"every change": {approvals{{People: 2}}, changepolicy.Facts{}, 2, "every change"},
		"another class": {
			approvals{{For: classes(breaking), People: 2}}, changepolicy.Facts{Permissions: true, Removal: true}, 0, "",
		},
		"two classes": {
			approvals{{For: classes(removal, permissions), People: 2}}, changepolicy.Facts{Permissions: true, Removal: true}, 2,
			"more permissions, removal",
		},
		"few objects":  {approvals{{Objects: new(int64(9)), People: 1}}, changepolicy.Facts{Objects: 9}, 0, ""},
		"many objects": {approvals{{Objects: new(int64(9))}}, changepolicy.Facts{Objects: 10}, 1, "more than 9 custom resources"},
		"the most wins": {
			approvals{{For: classes(breaking), People: 3}, {For: classes(breaking, removal), Objects: new(int64(0)), People: 1}},
			changepolicy.Facts{Breaking: true, Objects: 1}, 3, "breaking changes, more than 0 custom resources",
		},
	} {
		people, reasons := changepolicy.Needs(v1alpha1.ChangePolicySpec{Approvals: tc.approvals}, tc.facts)
		if people != tc.people || strings.Join(reasons, ", ") != tc.reasons {
			t.Errorf("%s: got %d, %v", name, people, reasons)
		}
	}
}

// Only approvals of this plan by others count, each user once.
func TestApprovers(t *testing.T) {
	lines := strings.Join([]string{
		"sha256:a jane", "sha256:b joe", "sha256:a jane", "sha256:a creator", "sha256:a ", "sha256:a", "", "sha256:a ann smith",
	}, "\n")
	if got := changepolicy.Approvers(lines, "sha256:a", "creator"); !slices.Equal(got, []string{"ann smith", "jane"}) {
		t.Errorf("got %q", got)
	}
}
