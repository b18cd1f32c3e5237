package bench_test

import (
	"fmt"
	"time"
)

// The goals.
const (
	// freshFactor bounds the time of an install without the cold read, as a multiple of the floor.
	freshFactor = 1.15
	// callsPerObject bounds the calls to objects for each changed object, and callsPerPackage all
	// other calls: permissions, status, events, discovery. Their number does not depend on the number
	// of objects.
	callsPerObject  = 1.1
	callsPerPackage = 30
	// mostNoise is the maximum share of the machine that other processes may use during a measurement
	// that is compared with a goal. Beyond it, the time depends on the scheduler more than on xpkg.
	mostNoise = 0.1
	// mostMemory bounds the memory of the manager, in bytes.
	mostMemory = 100 << 20
)

// installGoals returns the goals of an install of n CRDs.
func installGoals(r, floor, coldRead row, n int) []goal {
	most := time.Duration(freshFactor*float64(floor.wall)) + coldRead.wall
	return []goal{
		{
			what: fmt.Sprintf("wall at most %.2f × floor + cold read = %s", freshFactor, round(most)),
			met:  r.wall <= most, noise: max(r.noise, floor.noise, coldRead.noise),
		},
		perObjectGoal(r, n, "object"), otherCallsGoal(r),
	}
}

// perObjectGoal bounds the calls to objects. It also prints the number of all calls.
func perObjectGoal(r row, n int, what string) goal {
	calls := float64(toObjects(r)) / float64(n)
	return goal{
		what: fmt.Sprintf("at most %.1f calls for each %s: %.2f (%.2f with all other calls)", callsPerObject, what, calls, float64(r.calls.requests())/float64(n)),
		met:  calls <= callsPerObject,
	}
}

// otherCallsGoal bounds the calls that are not to objects.
func otherCallsGoal(r row) goal {
	n := r.calls.requests() - toObjects(r)
	return goal{what: fmt.Sprintf("at most %d other calls for the package: %d", callsPerPackage, n), met: n <= callsPerPackage}
}

func toObjects(r row) int {
	return r.calls.count(func(c call) bool { return c.verb != verbWatch && c.about() == aboutObjects })
}

// unchangedGoals returns the goals of a reconciliation without changes, which may read the given
// number of metadata lists.
func unchangedGoals(r row, most int) []goal {
	lists := r.calls.count(func(c call) bool { return c.verb == verbList && !c.page && c.about() == aboutObjects })
	return []goal{
		{what: fmt.Sprintf("at most %d metadata lists and no write: %d and %d", most, lists, r.calls.writes()), met: lists <= most && r.calls.writes() == 0},
		memoryGoal(r),
	}
}

// untouchedGoals returns the goals of a bundle while another package changes.
func untouchedGoals(r row, b bundle) []goal {
	n := r.calls.count(func(c call) bool { return c.verb != verbWatch && c.concerns(b) })
	return []goal{{what: fmt.Sprintf("no call for what is not changed: %d", n), met: n == 0}, memoryGoal(r)}
}

// deletionLists bounds the lists of CRDs during a deletion, independent of their number. Lists of webhook
// configurations do not count: the manager reads these in intervals, also without a deletion.
const deletionLists = 4

// deletionGoals returns the goals of the deletion of n CRDs.
func deletionGoals(r row, n int) []goal {
	writes := writesOfObjects(r)
	lists := r.calls.count(func(c call) bool { return c.verb == verbList && !c.page && c.about() == aboutObjects })
	return []goal{
		{what: fmt.Sprintf("at most 1 write for each CRD: %d for %d (%d writes in all)", writes, n, r.calls.writes()), met: writes <= n},
		{what: fmt.Sprintf("at most %d lists of CRDs: %d", deletionLists, lists), met: lists <= deletionLists},
		memoryGoal(r),
	}
}

// upgradeGoals returns the goals of an upgrade in which the content of some CRDs changed. No other CRD is written.
func upgradeGoals(r, installed row, changed int) []goal {
	const part = 0.15
	most := time.Duration(part * float64(installed.server))
	return []goal{
		upgradeWritesGoal(r, changed), otherCallsGoal(r),
		{
			what: fmt.Sprintf("server CPU at most %.2f × install = %s", part, round(most)), met: r.server <= most, noise: max(r.noise, installed.noise),
		},
		memoryGoal(r),
	}
}

// upgradeWritesGoal bounds the writes of objects. Objects that change are also read, to check what the API server will
// reject.
func upgradeWritesGoal(r row, changed int) goal {
	each := float64(writesOfObjects(r)) / float64(changed)
	return goal{what: fmt.Sprintf("at most %.1f writes for each object whose content changed: %.2f", callsPerObject, each), met: each <= callsPerObject}
}

func writesOfObjects(r row) int {
	return r.calls.count(func(c call) bool {
		return c.verb != verbGet && c.verb != verbList && c.verb != verbWatch && c.about() == aboutObjects
	})
}

func memoryGoal(r row) goal {
	return goal{what: fmt.Sprintf("manager under %d MiB: %d", mostMemory>>20, r.peak>>20), met: r.peak < mostMemory}
}
