package leader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// fencedLock reports the renewals of a Lease to a fence, and detects whether another manager is active.
type fencedLock struct {
	resourcelock.Interface
	fence *fence
	// namespace and name identify the Lease.
	namespace, name string
	// exclusive refuses a Lease that another manager renews.
	exclusive bool
	// preempt takes the Lease from other holders.
	preempt bool
	// refuse ends the wait for the Lease.
	refuse func()
	// allowed is true once this process has used the Lease. An API server that has just started denies requests until it
	// has read the roles, so a later denial does not end the wait.
	allowed *atomic.Bool

	// wait reports a holder that may have crashed, so that its Lease has to expire.
	wait func(holder string)
	// preempted reports a holder whose Lease is taken.
	preempted func(holder string)

	mu sync.Mutex
	// rival is the last record of another holder.
	rival *resourcelock.LeaderElectionRecord
	// noticed is when a manager whose Lease was taken has noticed that.
	noticed time.Time
	err     error
}

// Get reads the Lease. If another manager holds it, the term is over, unless this one takes the Lease back before its
// fence closes.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.noteAllowed(err)
	switch {
	case err != nil:
		l.failIf(l.isDenied(err), err)
	case record.HolderIdentity == l.Identity(), l.exclusive && record.HolderIdentity == "":
	case l.preempt && (!l.fence.led() || l.fence.check() == nil):
		l.take(record)
	case l.fence.led():
		l.fence.depose()
		l.stopFor(record)
	case l.isRenewed(*record):
		l.stopFor(record)
	}
	return record, raw, err
}

// Create takes a Lease that does not exist.
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.renewing(record, func() error { return l.Interface.Create(ctx, record) })
	l.failIf(l.isDenied(err) || apierrors.IsNotFound(err), err)
	return err
}

// Update takes or renews the Lease.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.renewing(record, func() error { return l.Interface.Update(ctx, record) })
	l.failIf(l.isDenied(err), err)
	return err
}

// noteAllowed records that this process may use the Lease, unless the request failed.
func (l *fencedLock) noteAllowed(err error) {
	if err == nil {
		l.allowed.Store(true)
	}
}

// isDenied reports whether this process may not use the Lease.
func (l *fencedLock) isDenied(err error) bool { return apierrors.IsForbidden(err) && !l.allowed.Load() }

func (l *fencedLock) renewing(record resourcelock.LeaderElectionRecord, write func() error) error {
	at := l.fence.now()
	err := write()
	l.noteAllowed(err)
	if err == nil && record.HolderIdentity == l.Identity() {
		l.fence.renew(at)
	}
	return err
}

// isRenewed records another holder, and reports whether it has renewed the Lease since it was recorded. The
// clocks of the machines are not compared.
func (l *fencedLock) isRenewed(record resourcelock.LeaderElectionRecord) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.rival
	l.rival = &record
	if last != nil && last.HolderIdentity == record.HolderIdentity {
		return !last.RenewTime.Equal(&record.RenewTime)
	}
	if l.exclusive {
		l.wait(record.HolderIdentity)
	}
	return false
}

// take releases the Lease of another holder, so that the election can acquire it.
func (l *fencedLock) take(record *resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rival == nil || l.rival.HolderIdentity != record.HolderIdentity {
		l.preempted(record.HolderIdentity)
	}
	l.rival = new(*record)
	// A manager renews its Lease several times within its duration. The duration in the Lease can have any
	// value.
	declared := time.Duration(record.LeaseDurationSeconds) * time.Second
	l.noticed = l.fence.now().Add(min(max(declared, 0), defaultLeaseDuration))
	record.HolderIdentity = ""
}

// handover returns when the former holder of a Lease that was taken has noticed that. It is zero for other Leases.
func (l *fencedLock) handover() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noticed
}

// stopFor stops an exclusive manager because of another one. A manager that preempts begins another term.
func (l *fencedLock) stopFor(record *resourcelock.LeaderElectionRecord) {
	if l.exclusive && !l.preempt {
		l.fail(l.anotherManager(record))
	}
}

// failIf stops a manager that cannot take the Lease, regardless of its holder. A manager that has held it
// waits: its fence stops the writes.
func (l *fencedLock) failIf(final bool, err error) {
	if final && !l.fence.led() {
		l.fail(fmt.Errorf("take the Lease %s: %w", l.Describe(), err))
	}
}

func (l *fencedLock) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	l.refuse()
}

// failure returns the reason why the manager must not wait for the Lease, or nil.
func (l *fencedLock) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *fencedLock) anotherManager(record *resourcelock.LeaderElectionRecord) error {
	return ErrAnotherManager.New(nil, "the manager %s has held the Lease %s since %s",
		record.HolderIdentity, l.Describe(), record.AcquireTime.UTC().Format(time.RFC3339)).
		WithDo("Stop the other manager, which `kubectl get lease --namespace %s %s -o yaml` shows, or run this one as a standby with --leader-election.",
			wording.ShellWord(l.namespace), wording.ShellWord(l.name))
}
