package bench_test

import (
	"fmt"
	"time"
)

// What is to be reached.
const (
	// freshFactor is how much longer than the floor, apart from the cold read, an
	// install may take.
	freshFactor = 1.15
	// callsPerObject bounds the calls to objects for each object that changes, and
	// callsPerPackage all others: rights, status, events, discovery. Those do not grow
	// with the objects.
	callsPerObject  = 1.1
	callsPerPackage = 30
	// mostNoise is up to which part of the machine other processes may use while a
	// time is measured that is judged. Beyond it the time tells more of how the
	// processors were shared out than of what was measured.
	mostNoise = 0.1
	// mostMemory bounds what the manager holds beside what it installed, in bytes.
	mostMemory = 100 << 20
)

// fresh judges an install of n definitions.
func fresh(r, floor, coldRead row, n int) []goal {
	most := time.Duration(freshFactor*float64(floor.wall)) + coldRead.wall
	return []goal{
		{
			what: fmt.Sprintf("wall at most %.2f × floor + cold read = %s", freshFactor, round(most)),
			met:  r.wall <= most, noise: max(r.noise, floor.noise, coldRead.noise),
		},
		perObject(r, n, "object"), beside(r),
	}
}

// perObject judges the calls to objects. How many there are in all is told with it.
func perObject(r row, n int, what string) goal {
	calls := float64(toObjects(r)) / float64(n)
	return goal{
		what: fmt.Sprintf("at most %.1f calls for each %s: %.2f (%.2f with all other calls)", callsPerObject, what, calls, float64(r.calls.requests())/float64(n)),
		met:  calls <= callsPerObject,
	}
}

// beside judges the calls that are not to objects.
func beside(r row) goal {
	n := r.calls.requests() - toObjects(r)
	return goal{what: fmt.Sprintf("at most %d other calls for the package: %d", callsPerPackage, n), met: n <= callsPerPackage}
}

func toObjects(r row) int {
	return r.calls.count(func(c call) bool { return c.verb != verbWatch && c.about() == aboutObjects })
}

// unchanged judges a reconcile in which there is nothing to do, and which may read so
// many lists of metadata.
func unchanged(r row, most int) []goal {
	lists := r.calls.count(func(c call) bool { return c.verb == verbList && !c.page && c.about() == aboutObjects })
	return []goal{
		{what: fmt.Sprintf("at most %d metadata lists and no write: %d and %d", most, lists, r.calls.writes()), met: lists <= most && r.calls.writes() == 0},
		memory(r),
	}
}

// undisturbed judges what a bundle costs when another package changes.
func undisturbed(r row, b bundle) []goal {
	n := r.calls.count(func(c call) bool { return c.verb != verbWatch && c.concerns(b) })
	return []goal{{what: fmt.Sprintf("no call for what is not changed: %d", n), met: n == 0}, memory(r)}
}

// upgraded judges an upgrade of n definitions, some of which changed. All of them
// change hands: the new revision becomes their controller, with one write each.
func upgraded(r row, n, changed int) []goal {
	return []goal{
		perObject(r, changed, "object whose content changed"),
		perObject(r, n, "object that changed hands"), beside(r),
		memory(r),
	}
}

func memory(r row) goal {
	return goal{what: fmt.Sprintf("manager under %d MiB: %d", mostMemory>>20, r.peak>>20), met: r.peak < mostMemory}
}
