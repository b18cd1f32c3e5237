package revisions

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// establishedPoll and maxEstablishedPoll are the shortest and the longest pause between two
	// checks of whether the API server serves the new kinds.
	establishedPoll    = 50 * time.Millisecond
	maxEstablishedPoll = 4 * time.Second
	// fastestEstablished is a lower bound of the time in which an API server establishes a CRD. It needs 50 to 150 ms of processor time.
	fastestEstablished = 5 * time.Millisecond
	// establishedTimeout is the maximum wait of one reconciliation before it reports its progress.
	establishedTimeout = 20 * time.Second
)

// waitEstablished waits for up to 20 seconds until the API server serves every kind that the
// package defines. If a kind is not served by then, the revision is not healthy, and the
// reconciliation stops and is repeated. The watch of CRDs shows when it is worth asking the API server.
func (r *Reconciler) waitEstablished(ctx context.Context, in *install) error {
	deadline, stall, poll := r.API.Now().Add(establishedTimeout), stallDetector{}, pollInterval{}
	names, created := in.objects.Missing(nil), createdDefinitions(in.changes)
	for {
		if err := r.Objects.Establishment.Wait(ctx, names, created, stallTimeout, deadline.Sub(r.API.Now())); err != nil {
			return err
		}
		missing, err := r.missingKinds(ctx, in)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			in.Revision.SetConditions(r.API.Time(), v1.RevisionHealthy())
			return nil
		}
		if stall.isStalled(len(missing), r.API.Now()) {
			if err := r.wakeAPIServer(ctx, missing); err != nil {
				return err
			}
		}
		if r.API.Now().After(deadline) {
			return r.reportNotEstablished(ctx, in, missing)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll.next(len(missing), r.API.Now())):
		}
	}
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
func (r *Reconciler) missingKinds(ctx context.Context, in *install) ([]string, error) {
	if in.objects.Definitions() == 0 {
		return nil, nil
	}
	return r.notServed(ctx, len(in.changes.Changes) > 0, in.objects.Missing)
}

// notServed returns the names that missing returns for the resources that the API server serves. Unless this reconciliation has
// written objects, it uses the result of another reconciliation if nothing is missing in it.
func (r *Reconciler) notServed(ctx context.Context, written bool, missing func(served map[schema.GroupResource]bool) []string) ([]string, error) {
	if !written {
		served, err := r.API.Cluster.Served(ctx, apply.Recent)
		if names := missing(served); err != nil || len(names) == 0 {
			return nil, err
		}
	}
	served, err := r.API.Cluster.Served(ctx, 0)
	return missing(served), err
}

// reportNotEstablished stops the reconciliation, and reports the number of CRDs that the API server
// has established, and the reason why the first missing one is not.
func (r *Reconciler) reportNotEstablished(ctx context.Context, in *install, missing []string) error {
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
