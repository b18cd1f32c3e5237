package revisions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// establishedPoll and maxEstablishedPoll are the shortest and the longest pause between two
	// checks of whether the API server serves the new kinds.
	establishedPoll    = 50 * time.Millisecond
	maxEstablishedPoll = 4 * time.Second
	// fastestEstablished is a lower bound of the time in which an API server establishes a CRD. It needs 50 to 150 ms of
	// processor time.
	fastestEstablished = 5 * time.Millisecond
	// establishedTimeout is the time without a newly served kind after which a reconciliation stops, and the time after
	// which it first reports its progress.
	establishedTimeout = 20 * time.Second
	// servedAge is the age up to which discovery shows that the kinds of a revision that writes nothing are served: the
	// watch of CRDs reports when one of them changes.
	servedAge = 10 * time.Second
	// currentPoll is the pause between two checks of whether the revision that waits was deleted or changed.
	currentPoll = time.Second
)

// waitEstablished waits until the API server serves every kind that the package defines, and reports its progress after
// 20 seconds and then at intervals that double. If the API server serves no more kinds for 20 seconds, the revision is
// not healthy, and the reconciliation stops and is repeated. It fails with NoServedVersion if a CRD can never be
// served, and with requeue.ErrStale when the revision or its package changes. The watch of CRDs shows when it is worth
// asking the API server.
func (r *Reconciler) waitEstablished(ctx context.Context, in *reconciliation) error {
	ctx, cancel := r.whileCurrent(ctx, in.Set)
	defer cancel()
	wait, stall, poll := establishedWait{}, stallDetector{}, pollInterval{}
	names, created := in.objects.Missing(nil), createdDefinitions(in.changes)
	for {
		if err := r.Objects.Establishment.Wait(ctx, names, created, stallTimeout, wait.rest(r.API.Now())); err != nil {
			return context.Cause(ctx)
		}
		missing, err := r.missingKinds(ctx, in)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if len(missing) == 0 {
			in.Revision.SetConditions(r.API.Time(), v1.RevisionHealthy())
			return nil
		}
		if stall.isStalled(len(missing), r.API.Now()) {
			unserved, err := apply.Unserved(missing, in.objects.Content)
			if err != nil {
				return err
			}
			if len(unserved) > 0 {
				return apply.Refused(unserved, "%s cannot be established", revision.ObjectName(in.Package))
			}
			if err := r.wakeAPIServer(ctx, missing); err != nil {
				return err
			}
		}
		switch wait.next(len(missing), r.API.Now()) {
		case stopWaiting:
			return r.reportNotEstablished(ctx, in, missing)
		case reportWaiting:
			r.reportEstablishing(ctx, in, len(missing))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll.next(len(missing), r.API.Now())):
		}
	}
}

// whileCurrent returns a context that is canceled with the cause requeue.ErrStale when the revision or its package is
// deleted or its spec changes.
func (r *Reconciler) whileCurrent(ctx context.Context, set revision.Set) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(currentPoll)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if r.isChanged(ctx, set.Revision, set.Package.NewRevision()) ||
					r.isChanged(ctx, set.Package, v1.NewPackage(r.Kind)) {
					cancel(requeue.ErrStale)
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// isChanged reports whether an object in the cache, which it reads into now, has another spec than before, or is being
// deleted and was not before.
func (r *Reconciler) isChanged(ctx context.Context, before, now client.Object) bool {
	if err := r.API.Client.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return apierrors.IsNotFound(err)
	}
	return now.GetUID() != before.GetUID() || now.GetGeneration() > before.GetGeneration() ||
		(now.GetDeletionTimestamp() == nil) != (before.GetDeletionTimestamp() == nil)
}

// establishedWait decides what a wait for the kinds of a package does next. The zero value is a wait that begins with
// the first call.
type establishedWait struct {
	fewest   int       // missing kinds
	served   time.Time // the last time at which the number fell
	report   time.Time // of the next report
	interval time.Duration
}

// waitAction is the next action of a wait.
type waitAction int

const (
	keepWaiting waitAction = iota
	reportWaiting
	stopWaiting
)

// next returns the action for the number of missing kinds.
func (w *establishedWait) next(missing int, now time.Time) waitAction {
	if w.interval == 0 {
		w.interval = establishedTimeout
		w.report = now.Add(w.interval)
	}
	if w.served.IsZero() || missing < w.fewest {
		w.fewest, w.served = missing, now
	}
	switch {
	case now.Sub(w.served) >= establishedTimeout:
		return stopWaiting
	case now.Before(w.report):
		return keepWaiting
	}
	w.interval *= 2
	w.report = now.Add(w.interval)
	return reportWaiting
}

// rest returns the time until the next report, at most establishedTimeout.
func (w *establishedWait) rest(now time.Time) time.Duration {
	if w.interval == 0 {
		return establishedTimeout
	}
	return min(establishedTimeout, w.report.Sub(now))
}

// reportEstablishing reports the number of CRDs that the API server has established, while the reconciliation goes on.
func (r *Reconciler) reportEstablishing(ctx context.Context, in *reconciliation, missing int) {
	total := in.objects.Definitions()
	message := fmt.Sprintf("NotEstablished: %d of %d CustomResourceDefinitions are established.", total-missing, total)
	in.Revision.SetConditions(r.API.Time(), v1.RevisionUnhealthy(message))
	r.API.Status.ReportProgress(ctx, in.Revision, message)
}

// createdDefinitions returns the names of the CRDs that a plan creates.
func createdDefinitions(p plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, c := range p.Changes {
		if c.Action == plan.Create && c.Ref.Kind == plan.DefinitionKind {
			out[c.Ref.Name] = true
		}
	}
	return out
}

// missingKinds returns the names of the CRDs whose kinds the API server does not serve yet.
func (r *Reconciler) missingKinds(ctx context.Context, in *reconciliation) ([]string, error) {
	if in.objects.Definitions() == 0 {
		return nil, nil
	}
	return r.notServed(ctx, len(in.changes.Changes) > 0, in.objects.Missing)
}

// notServed returns the names that missing returns for the resources that the API server serves. Unless this
// reconciliation has written objects, it uses the result of another reconciliation if nothing is missing in it.
func (r *Reconciler) notServed(
	ctx context.Context, written bool, missing func(served map[schema.GroupResource]bool) []string,
) ([]string, error) {
	if !written {
		served, err := r.API.Cluster.Served(ctx, servedAge)
		if names := missing(served); err != nil || len(names) == 0 {
			return nil, err
		}
	}
	served, err := r.API.Cluster.Served(ctx, 0)
	return missing(served), err
}

// reportNotEstablished stops the reconciliation, and reports the number of CRDs that the API server
// has established, and the reason why the first missing one is not.
func (r *Reconciler) reportNotEstablished(ctx context.Context, in *reconciliation, missing []string) error {
	reason, err := r.API.Cluster.WhyNotEstablished(ctx, missing[0])
	if err != nil {
		return err
	}
	total := in.objects.Definitions()
	message := fmt.Sprintf("NotEstablished: %d of %d CustomResourceDefinitions are established; waiting for %s: %s",
		total-len(missing), total, missing[0], reason)
	in.Revision.SetConditions(r.API.Time(), v1.RevisionUnhealthy(message))
	in.stop(revision.Progressing(message), time.Second)
	return nil
}

const (
	// stallTimeout is the time without a newly established CRD after which the API server is woken.
	// An API server needs a third of a second for each CRD. With several API servers, each change
	// takes up to five seconds; a wake-up then does no harm.
	stallTimeout = 2 * time.Second
	// maxWoken limits the CRDs that are written to wake the API server. An API server that was
	// stopped leaves few CRDs half established, since it works on one at a time.
	maxWoken = 8
)

// stallDetector detects that the API server establishes no more CRDs.
type stallDetector struct {
	missing int
	since   time.Time
}

// isStalled reports whether the number of missing CRDs has not changed for stallTimeout. If it
// reports true, it restarts the measurement.
func (s *stallDetector) isStalled(missing int, now time.Time) bool {
	if missing != s.missing {
		s.missing, s.since = missing, now
		return false
	}
	if now.Sub(s.since) < stallTimeout {
		return false
	}
	s.since = now
	return true
}

// wakeAPIServer makes the API server continue with CRDs that it left half established.
func (r *Reconciler) wakeAPIServer(ctx context.Context, missing []string) error {
	for _, name := range missing[:min(maxWoken, len(missing))] {
		if err := r.API.Cluster.Wake(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// pollInterval adapts the pause between two checks to the rate at which the API server establishes CRDs.
type pollInterval struct {
	missing int
	since   time.Time
}

// next returns the pause before the next check: the time after which three quarters of the missing CRDs are
// expected to be established, so that a large package needs only a few more checks than a small one. The pause is at
// most as long as the time waited so far, because the rate may increase, and at most maxEstablishedPoll. It is at least
// a fortieth of the time waited, and the time in which no API server establishes all missing CRDs.
func (p *pollInterval) next(missing int, now time.Time) time.Duration {
	if p.since.IsZero() {
		p.missing, p.since = missing, now
	}
	waited := now.Sub(p.since)
	next := waited
	if done := p.missing - missing; done > 0 {
		next = min(waited, waited*time.Duration(3*missing)/time.Duration(4*done))
	}
	return min(max(next, waited/40, establishedPoll, time.Duration(missing)*fastestEstablished), maxEstablishedPoll)
}

// checkComposed reports in the Ready condition which XRDs of a package are not established. The
// package stays ready: Crossplane core establishes XRDs, and may be installed later.
func (r *Reconciler) checkComposed(ctx context.Context, in *reconciliation) error {
	composites, err := in.objects.Composites()
	if err != nil || len(composites) == 0 {
		return err
	}
	missing, err := r.notServed(ctx, false, func(served map[schema.GroupResource]bool) []string {
		var missing []string
		for ref, c := range composites {
			if !served[schema.GroupResource{Group: c.Group, Resource: c.Plural}] {
				missing = append(missing, ref.Name)
			}
		}
		return missing
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	slices.Sort(missing)
	const named = 3
	in.summary.Reason = v1.ReasonNotComposed
	in.summary.Message = fmt.Sprintf(
		"Installed, but %s not established: %s. No Crossplane in this cluster composes them; to create their resources, install Crossplane core.",
		wording.Count(len(missing), "XRD")+map[bool]string{true: " is", false: " are"}[len(missing) == 1],
		wording.Few(missing, named, ", "))
	in.requeueAfter(r.backoff(in.Revision.GetCondition(v1.TypeRevisionHealthy)))
	return nil
}
