// Package changepolicy decides what a ChangePolicy asks of a transaction: when it may start, and which approvals it
// needs.
//
// The package is pure: it reads no clock and no cluster.
package changepolicy

import (
	"fmt"
	"slices"
	"time"

	// Names of time zones work on machines without a database, as in the image of the manager.
	_ "time/tzdata"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// layout is how times are shown.
const layout = "Mon 2 Jan 2006 15:04 MST"

// Format returns a time in its time zone, as users read it.
func Format(t time.Time) string { return t.Format(layout) }

// Opens reports whether a transaction may start now. Otherwise, next is the time at which it may, in the time zone of
// the policy, or zero if there is none, and why is the reason as a clause. A policy that is not valid is an error: no
// transaction may start.
func Opens(p v1alpha1.ChangePolicySpec, now time.Time) (open bool, next time.Time, why string, err error) {
	s, err := newSchedule(p)
	if err != nil {
		return false, time.Time{}, "", err
	}
	frozen := frozenAt(p.Freezes, now)
	switch {
	case frozen == nil && s.isOpen(now):
		return true, time.Time{}, "", nil
	case frozen != nil && frozen.Reason != "":
		why = "changes are frozen: " + frozen.Reason
	case frozen != nil:
		why = "changes are frozen"
	default:
		why = "no window for changes is open"
	}
	next = now
	// Each turn passes a freeze or the time until a window.
	for range 2*len(p.Freezes) + 2 {
		if f := frozenAt(p.Freezes, next); f != nil {
			next = f.To.Time
			continue
		}
		if s.isOpen(next) {
			return false, next.In(s.zone), why, nil
		}
		if next = s.nextStart(next); next.IsZero() {
			break
		}
	}
	return false, time.Time{}, why, nil
}

// Check returns an error for a policy with values that its schema accepts, and that do not exist.
func Check(p v1alpha1.ChangePolicySpec) error {
	_, err := newSchedule(p)
	return err
}

// frozenAt returns the freeze at a time that ends last, or nil.
func frozenAt(freezes []v1alpha1.ChangeFreeze, t time.Time) *v1alpha1.ChangeFreeze {
	var out *v1alpha1.ChangeFreeze
	for i := range freezes {
		f := &freezes[i]
		if !t.Before(f.From.Time) && t.Before(f.To.Time) && (out == nil || out.To.Before(&f.To)) {
			out = f
		}
	}
	return out
}

// schedule is the windows of a policy.
type schedule struct {
	zone    *time.Location
	windows []window
}

// window is one that opens on some days at a time of the day, in minutes.
type window struct {
	days     []time.Weekday
	week     int
	from     time.Duration
	duration time.Duration
}

// weekdays are the days of the week in the order of package time.
var weekdays = []v1alpha1.Weekday{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

func newSchedule(p v1alpha1.ChangePolicySpec) (schedule, error) {
	name := p.TimeZone
	if name == "Local" { // That of this machine.
		return schedule{}, fmt.Errorf("the time zone %s does not exist", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return schedule{}, fmt.Errorf("the time zone %s does not exist", name)
	}
	out := schedule{zone: zone}
	for _, w := range p.Windows {
		next := window{duration: w.Duration.Duration}
		if w.Week != nil {
			next.week = int(*w.Week)
		}
		if w.From != "" {
			at, err := time.Parse("15:04", w.From)
			if err != nil {
				return schedule{}, fmt.Errorf("a window opens at %q, which is no time such as 22:00", w.From)
			}
			next.from = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
		}
		for _, d := range w.Days {
			i := slices.Index(weekdays, d)
			if i < 0 {
				return schedule{}, fmt.Errorf("a window opens on %q, which is no day such as Sat", d)
			}
			next.days = append(next.days, time.Weekday(i))
		}
		out.windows = append(out.windows, next)
	}
	return out, nil
}

// longest is the longest duration of a window, in days.
const longest = 7

// isOpen reports whether a window is open.
func (s schedule) isOpen(now time.Time) bool {
	for _, w := range s.windows {
		for day := -longest - 1; day <= 1; day++ {
			if start, ok := s.start(w, now, day); ok && !now.Before(start) && now.Before(start.Add(w.duration)) {
				return true
			}
		}
	}
	return len(s.windows) == 0
}

// horizon is the number of days in which every window opens: the fifth weekday of a month can be 14 weeks away.
const horizon = 200

// nextStart returns the first time after another one at which a window opens.
func (s schedule) nextStart(after time.Time) time.Time {
	var out time.Time
	for _, w := range s.windows {
		for day := -1; day <= horizon; day++ {
			if start, ok := s.start(w, after, day); ok && start.After(after) {
				if out.IsZero() || start.Before(out) {
					out = start
				}
				break
			}
		}
	}
	return out
}

// start returns the time at which a window opens on a day, which is counted from that of another time. It reports false
// if the window does not open on that day.
func (s schedule) start(w window, from time.Time, day int) (time.Time, bool) {
	year, month, first := from.In(s.zone).Date()
	date := time.Date(year, month, first+day, 0, 0, 0, 0, time.UTC)
	if len(w.days) > 0 && !slices.Contains(w.days, date.Weekday()) {
		return time.Time{}, false
	}
	const week = 7
	switch {
	case w.week > 0 && (date.Day()-1)/week+1 != w.week,
		w.week < 0 && date.AddDate(0, 0, week).Month() == date.Month():
		return time.Time{}, false
	}
	at := s.first(date.Add(w.from))
	y, m, d := at.Date()
	// A time zone can skip a day.
	return at, y == date.Year() && m == date.Month() && d == date.Day()
}

// first returns the first time at which the clocks of the time zone show a time, which is written in UTC, or a later
// one if they skip it.
func (s schedule) first(wall time.Time) time.Time {
	// The offset changes at most once in these days.
	const around = 26 * time.Hour
	_, before := wall.Add(-around).In(s.zone).Zone()
	_, after := wall.Add(around).In(s.zone).Zone()
	for _, offset := range []int{before, after} {
		t := wall.Add(-time.Duration(offset) * time.Second).In(s.zone)
		if _, is := t.Zone(); is == offset {
			return t
		}
	}
	// With the former offset, the time is after the change that skips it.
	changed, _ := wall.Add(-time.Duration(before) * time.Second).In(s.zone).ZoneBounds()
	return changed.In(s.zone)
}
