package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

const (
	// firstStatusDelay is the time for which a package that is being installed has no status, unless there is something to report. Most
	// packages without a runtime are healthy by then, and need one write less.
	firstStatusDelay = time.Second
	// firstStatusInterval is the time between two of these writes. Many packages that are created at once take longer, and their writes
	// would delay them further: every write is also sent to all clients that watch packages.
	firstStatusInterval = 100 * time.Millisecond
)

// firstStatuses holds the first statuses of packages that are not written yet. A process that ends loses them, as if it had ended before
// it wrote them: the next one takes the content of the package from its revision.
type firstStatuses struct {
	held expectations.Cache[types.UID, firstStatus]
	// last is the latest time at which a held status is written. The lock of held guards it.
	last time.Time
}

// firstStatus is a status with the time at which it is written at the latest.
type firstStatus struct {
	status v1.PackageStatus
	until  time.Time
}

// restore sets the status of a package to its first status, if that is held.
func (f *firstStatuses) restore(o Object) {
	p, ok := o.(v1.Package)
	if !ok {
		return
	}
	if first, held := f.held.Pending(p.GetUID(), func(firstStatus) bool { return hasStatus(p) }); held {
		first.status.DeepCopyInto(p.PackageStatus())
	}
}

// hold keeps the status of a package that progresses and had none before, and returns the time until it is written at the latest. It
// returns zero for a status that is written now.
func (f *firstStatuses) hold(before, o Object, s revision.Summary, now time.Time) time.Duration {
	p, ok := o.(v1.Package)
	if !ok || hasStatus(before.(v1.Package)) || p.GetDeletionTimestamp() != nil || s != revision.Progressing("") {
		return 0
	}
	var first firstStatus
	f.held.Update(p.GetUID(), func(earlier firstStatus) firstStatus {
		if first = earlier; first.until.IsZero() {
			first.until = f.next(now)
		}
		p.PackageStatus().DeepCopyInto(&first.status)
		return first
	})
	return first.until.Sub(now)
}

// next returns the time at which the next held status is written at the latest.
func (f *firstStatuses) next(now time.Time) time.Time {
	at := now.Add(firstStatusDelay)
	if after := f.last.Add(firstStatusInterval); after.After(at) {
		at = after
	}
	f.last = at
	return at
}

// hasStatus reports whether the status of a package was ever written.
func hasStatus(p v1.Package) bool { return len(p.PackageStatus().Conditions) > 0 }
