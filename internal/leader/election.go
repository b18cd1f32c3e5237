// Package leader implements leader election for managers. It detects a second manager, and stops the writes
// of a former leader.
package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Election configures the leader election of managers: the holder of the Lease works, the others are on
// standby or fail.
type Election struct {
	// Namespace and Name identify the Lease. An empty name means DefaultLease.
	Namespace, Name string
	// Identity identifies this manager process. It must differ each time a manager is
	// started, unless another lock excludes that two of them run at once.
	Identity string
	// Exclusive makes the manager fail with ErrAnotherManager instead of waiting while another manager
	// renews the Lease. While it cannot renew the Lease, its work continues without writes.
	Exclusive bool
	// Preempt takes the Lease from every other holder, with any content. It is for a manager of which only
	// one can exist by another lock, so that no client of the API server can keep it from working. If the
	// former holder is a manager, it has noticed the loss when the work starts.
	Preempt bool
	// Duration is the time for which other managers wait for a Lease that is not renewed. Zero means
	// defaultLeaseDuration. A manager that cannot renew it writes nothing more after two thirds of that
	// time.
	Duration time.Duration
}

// AnnotationNamespace is the annotation of the Lock with the namespace of the manager that manages
// the packages of the cluster. Managers in one namespace elect a leader with a Lease. A cluster has
// only one Lock, so its annotation also excludes managers in other namespaces.
const AnnotationNamespace = "xpkg.dev/manager-namespace"

const (
	// DefaultLease is the name of the Lease.
	DefaultLease = "xpkg-manager"
	// LocalIdentity is the identity of the manager of a local control plane, which stops with it.
	LocalIdentity = "xpkg-up"
	// defaultLeaseDuration lets another manager work less than 20 seconds after the
	// former one was cut off: it has to see a Lease that has not moved for so long,
	// and to start.
	defaultLeaseDuration = 10 * time.Second

	// renewals is the number of renewals of a Lease within its duration.
	renewals = 7
	// releaseLimit bounds the release of the Lease when a manager stops.
	releaseLimit = 5 * time.Second
)

// ErrDeposed is the code for a call of a manager that is no longer the leader.
var ErrDeposed = errcode.Code{
	Name: "Deposed", Class: errcode.Conflict,
	Cause: "The manager could not renew its Lease in time, so another manager may be active.",
	Fix:   "No action needed: the manager that holds the Lease is active, and this one is a standby.",
}

// ErrAnotherManager is the code for a manager that finds another one at work.
var ErrAnotherManager = errcode.Code{
	Name: "AnotherManager", Class: errcode.Conflict,
	Cause: "Another manager works on the cluster: two of them would undo the changes of each other.",
	Fix:   "Stop the other manager, or run this one as a standby with --leader-election.",
}

// A candidate takes part in the election, and works while it leads.
type candidate struct {
	Election
	client coordinationv1.CoordinationV1Interface
	log    *slog.Logger
	detail logr.Logger
	work   Work
	// allowed is that of each [fencedLock].
	allowed atomic.Bool
}

// Work runs the work of a leader until its context ends. All its clients must use the
// fence, which wraps their transport.
type Work func(ctx context.Context, fence transport.WrapperFunc) error

// Run waits for the Lease and works while this manager leads, until ctx ends or the work fails. Detail is
// the log of the library.
func Run(ctx context.Context, e Election, cfg *rest.Config, log *slog.Logger, detail logr.Logger, work Work) error {
	e.Name, e.Duration = cmp.Or(e.Name, DefaultLease), cmp.Or(e.Duration, defaultLeaseDuration)
	cfg = rest.CopyConfig(cfg)
	// A slower renewal is useless.
	cfg.Timeout = e.renewDeadline()
	cfg.QPS = -1
	c, err := coordinationv1.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	return (&candidate{Election: e, client: c, log: log, detail: detail, work: work}).run(ctx)
}

func (e Election) renewDeadline() time.Duration { return e.Duration * 2 / 3 }

// run waits and works alternately, until ctx ends or the work fails.
func (c *candidate) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.term(ctx); err != nil {
			return err
		}
	}
	return nil
}

// term waits for the Lease, runs the work while the Lease is renewed, and releases the
// Lease after the work has ended.
func (c *candidate) term(ctx context.Context) error {
	f := newFence(c.renewDeadline(), time.Now)
	// The Lease is held for longer than ctx: until the work has ended.
	holding, release := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), c.detail))
	defer release()
	lock := c.lock(f, release)
	ended := make(chan error, 1)
	work := sync.OnceFunc(func() {
		level := slog.LevelInfo
		if c.Exclusive {
			// There is no standby to distinguish.
			level = slog.LevelDebug
		}
		waitUntil(ctx, f.term, lock.handover())
		c.log.Log(ctx, level, "leads", "lease", c.Namespace+"/"+c.Name, "identity", c.Identity)
		ended <- c.lead(ctx, f)
		release()
	})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: c.Name,
		LeaseDuration: c.Duration, RenewDeadline: c.renewDeadline(), RetryPeriod: c.Duration / renewals,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { work() }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	// A standby has no work to stop; a deposed leader has no lease to release.
	defer context.AfterFunc(ctx, func() {
		if !f.led() {
			release()
		}
	})()
	defer context.AfterFunc(f.term, release)()
	elector.Run(holding)
	for c.Exclusive && holding.Err() == nil {
		elector.Run(holding)
	}
	if !f.led() {
		return lock.failure()
	}
	deposed := f.term.Err() != nil || ctx.Err() == nil && len(ended) == 0
	f.depose()
	err = <-ended
	if deposed {
		c.log.Warn("is no longer the leader", "lease", c.Namespace+"/"+c.Name, "identity", c.Identity)
		return lock.failure()
	}
	c.releaseLease(lock)
	return err
}

// waitUntil waits for a time, unless one of the contexts ends before it.
func waitUntil(ctx, term context.Context, at time.Time) {
	wait := time.Until(at)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-term.Done():
	}
}

// lock returns the Lease. It calls refuse when this manager must not wait for the Lease.
func (c *candidate) lock(f *fence, refuse func()) *fencedLock {
	return &fencedLock{
		fence: f, namespace: c.Namespace, name: c.Name, exclusive: c.Exclusive, preempt: c.Preempt, refuse: refuse,
		allowed: &c.allowed,
		preempted: func(holder string) {
			c.log.Warn("takes the lease from another holder; if that is a manager, stop it", "lease", c.Namespace+"/"+
				c.Name, "holder", holder)
		},
		wait: func(holder string) {
			c.log.Info("waits until another manager renews the lease, or its lease expires", "lease", c.Namespace+"/"+
				c.Name, "holder", holder)
		},
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
			Client:     c.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
		},
	}
}

// lead works until ctx ends, or the term does.
func (c *candidate) lead(ctx context.Context, f *fence) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(f.term, stop)()
	err := c.work(working, f.wrap)
	if f.term.Err() != nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// releaseLease releases the Lease, so that the next leader does not have to wait until it
// expires. The fence is closed by then.
func (c *candidate) releaseLease(lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != c.Identity {
		return
	}
	now := metav1.Now()
	err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
	})
	if err != nil {
		c.log.Info("the lease could not be released, and will expire", "error", err.Error())
	}
}
