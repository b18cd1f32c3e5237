package bench_test

import (
	"fmt"
	"time"
)

// The goals.
const (
	// floorFactor bounds the time and the processor time of the API server for an install or a removal, as a multiple of
	// the floor. The time of an install is compared without the cold read.
	floorFactor = 1.10
	// callsPerObject bounds the calls to objects for each changed object, and callsPerPackage all
	// other calls: permissions, status, events, discovery. Their number does not depend on the number
	// of objects.
	callsPerObject  = 1.1
	callsPerPackage = 20
	// unchangedCalls bounds the calls of a reconciliation without changes.
	unchangedCalls = 10
	// mostNoise is the maximum share of the machine that other processes may use during a measurement
	// that is compared with a goal. Beyond it, the time depends on the scheduler more than on xpkg.
	mostNoise = 0.1
	// The memory of the manager, in MiB: at the peak of an operation, in a cluster of many foreign objects at its peak and
	// when it is idle.
	mostMemory, crowdPeak, crowdIdle = 150, 180, 100
)

// wallGoal bounds a time.
func wallGoal(r row, most time.Duration, what string) goal {
	return goal{
		what: fmt.Sprintf("%s at most %s: %s", what, round(most), round(r.wall)), met: r.wall <= most, noise: r.noise,
	}
}

// factorGoal bounds the time of a row as a multiple of its floor.
func factorGoal(r row, most float64, what string) goal {
	return goal{
		what: fmt.Sprintf("at most %.4g × %s: %.2f", most, what, r.wall.Seconds()/r.floor.Seconds()),
		met:  r.wall.Seconds() <= most*r.floor.Seconds(), noise: r.noise, relative: true,
	}
}

// floorGoals bounds the time and the processor time of the API server by the floor.
func floorGoals(r, floor row, extra time.Duration, plus string) []goal {
	most, wall := time.Duration(floorFactor*float64(floor.wall))+extra, r.atSpeedOf(floor, r.wall)
	return []goal{
		{
			what: fmt.Sprintf("wall at most %.2f × floor%s = %s: %s", floorFactor, plus, round(most), round(wall)),
			met:  wall <= most, noise: max(r.noise, floor.noise), relative: true,
		},
		serverGoal(r, floor, floorFactor, "floor"),
	}
}

// serverGoal bounds the processor time of the API server by that of another row.
func serverGoal(r, other row, most float64, what string) goal {
	ratio := r.ratio(r.server, other, other.server)
	return goal{what: fmt.Sprintf("server CPU at most %.2f × %s: %.2f", most, what, ratio), met: ratio <= most}
}

// installGoals returns the goals of an install of n CRDs.
func installGoals(r, floor, coldRead row, n int) []goal {
	return append(
		floorGoals(r, floor, coldRead.wall, " + cold read"), perObjectGoal(r, n, "object"), otherCallsGoal(r),
		memoryGoal(r, mostMemory),
	)
}

// perObjectGoal bounds the calls to objects. It also prints the number of all calls.
func perObjectGoal(r row, n int, what string) goal {
	calls := float64(toObjects(r)) / float64(n)
	return goal{
		what: fmt.Sprintf(
			"at most %.1f calls for each %s: %.2f (%.2f with all other calls)", callsPerObject, what, calls,
			float64(r.calls.requests())/float64(n),
		),
		met: calls <= callsPerObject,
	}
}

// otherCallsGoal bounds the calls that are not to objects.
func otherCallsGoal(r row) goal {
	n := r.calls.requests() - toObjects(r)
	return goal{
		what: fmt.Sprintf("at most %d other calls for the package: %d", callsPerPackage, n), met: n <= callsPerPackage,
	}
}

func toObjects(r row) int {
	return r.calls.count(func(c call) bool { return c.verb != verbWatch && c.about() == aboutObjects })
}

// unchangedGoals returns the goals of a reconciliation without changes. A list that is read in pages counts once.
func unchangedGoals(r row) []goal {
	pages := r.calls.count(func(c call) bool { return c.page })
	calls, writes := r.calls.requests()-pages, r.calls.writes()
	return []goal{
		{what: fmt.Sprintf("no write, at most %d calls: %d and %d", unchangedCalls, writes, calls), met: writes == 0 &&
			calls <= unchangedCalls},
		memoryGoal(r, mostMemory),
	}
}

// untouchedGoals returns the goals of a bundle while another package changes.
func untouchedGoals(r row, b bundle) []goal {
	n := r.calls.count(func(c call) bool { return c.verb != verbWatch && c.concerns(b) })
	return []goal{{what: fmt.Sprintf("no call for what is not changed: %d", n), met: n == 0}, memoryGoal(r, mostMemory)}
}

// deletionLists bounds the lists of CRDs during a deletion, independent of their number. Lists of webhook
// configurations do not count: the manager reads these in intervals, also without a deletion.
const deletionLists = 4

// deletionGoals returns the goals of the deletion of n CRDs.
func deletionGoals(r, floor row, n int) []goal {
	writes := writesOfObjects(r)
	lists := r.calls.count(func(c call) bool { return c.verb == verbList && !c.page && c.about() == aboutObjects })
	return append(floorGoals(r, floor, 0, ""),
		goal{
			what: fmt.Sprintf("at most 1 write for each CRD: %d for %d (%d writes in all)", writes, n, r.calls.writes()),
			met:  writes <= n,
		},
		goal{what: fmt.Sprintf("at most %d lists of CRDs: %d", deletionLists, lists), met: lists <= deletionLists},
		memoryGoal(r, mostMemory))
}

// upgradeGoals returns the goals of an upgrade in which the content of some CRDs changed. No other CRD is written.
func upgradeGoals(r, installed row, changed int) []goal {
	const part = 0.15
	ratio := r.ratio(r.wall, installed, installed.wall)
	return []goal{
		{what: fmt.Sprintf(
			"wall at most %.2f × install: %.2f", part, ratio,
		), met: ratio <= part, noise: max(r.noise, installed.noise), relative: true},
		serverGoal(r, installed, part, "install"),
		upgradeWritesGoal(r, changed), memoryGoal(r, mostMemory),
	}
}

// upgradeWritesGoal bounds the writes of objects. Objects that change are also read, to check what the API server will
// reject.
func upgradeWritesGoal(r row, changed int) goal {
	each := float64(writesOfObjects(r)) / float64(changed)
	return goal{
		what: fmt.Sprintf("at most %.1f writes for each object whose content changed: %.2f", callsPerObject, each),
		met:  each <= callsPerObject,
	}
}

func writesOfObjects(r row) int {
	return r.calls.count(func(c call) bool {
		return c.verb != verbGet && c.verb != verbList && c.verb != verbWatch && c.about() == aboutObjects
	})
}

// memoryGoal bounds the peak memory of the client.
func memoryGoal(r row, mebibytes int64) goal {
	return goal{what: fmt.Sprintf("peak memory at most %d MiB: %d", mebibytes, r.peak>>20), met: r.peak <= mebibytes<<20}
}
