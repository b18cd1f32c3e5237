package packages

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/pause"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Counts counts the custom resources of the packages whose runtime runs, again and again. With their number in the
// status, the guard of removals refuses the deletion of a package; without it, the deletion is held.
//
// A count is one small request for each kind, at most one a second. The API server loads a kind when it is first used,
// which takes megabytes: a runtime uses the kinds of its package anyway, and kinds of other packages are not counted.
type Counts struct {
	// Client reads packages, revisions and CRDs from the cache.
	Client  client.Reader
	Counter Counter
	// Runs reports whether the manager runs the runtime of a Provider.
	Runs func(name string) bool
	// Interval is the shortest time between two counts of a kind.
	Interval time.Duration

	mu      sync.Mutex
	numbers map[types.UID]int64
	changes map[string]chan event.GenericEvent
}

// NewCounts returns counts without a number.
func NewCounts(c client.Reader, counter Counter, runs func(name string) bool, interval time.Duration) *Counts {
	out := &Counts{Client: c, Counter: counter, Runs: runs, Interval: interval, numbers: map[types.UID]int64{}}
	out.changes = map[string]chan event.GenericEvent{}
	for _, kind := range v1.PackageKinds() {
		out.changes[kind] = make(chan event.GenericEvent)
	}
	return out
}

// NeedLeaderElection makes only the leader count.
func (c *Counts) NeedLeaderElection() bool { return true }

// Start counts until the context ends.
func (c *Counts) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		// A package that cannot be counted now is counted in the next round.
		_ = c.round(ctx)
	}
	return nil
}

// shortestPause is the pause between two counts if there are many kinds.
const shortestPause = time.Second

// round counts the custom resources of each kind once. It takes at least the interval.
func (c *Counts) round(ctx context.Context) error {
	kinds, err := c.kinds(ctx)
	n := 0
	for _, names := range kinds {
		n += len(names)
	}
	if err != nil || n == 0 {
		return pause.For(ctx, c.Interval)
	}
	rest := max(min(shortestPause, c.Interval), c.Interval/time.Duration(n))
	for p, names := range kinds {
		total, isKnown := int64(0), true
		for _, name := range names {
			if err := pause.For(ctx, rest); err != nil {
				return err
			}
			counts, err := c.Counter.CustomResources(ctx, []string{name}, false)
			isKnown = isKnown && err == nil && (len(counts) == 0 || counts[0].Unknown == "")
			if isKnown && len(counts) > 0 {
				total += counts[0].Count
			}
		}
		if isKnown {
			c.record(ctx, p, total)
		}
	}
	return nil
}

// record records the number of a package, and reports a change.
func (c *Counts) record(ctx context.Context, p v1.Package, total int64) {
	c.mu.Lock()
	c.numbers[p.GetUID()] = total
	c.mu.Unlock()
	if now := p.PackageStatus().CustomResources; now != nil && *now == total {
		return
	}
	select {
	case c.changes[p.PackageKind()] <- event.GenericEvent{Object: p}:
	case <-ctx.Done():
	}
}

// set sets the number in the status of a package, if it was counted.
func (c *Counts) set(p v1.Package) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if total, ok := c.numbers[p.GetUID()]; ok {
		p.PackageStatus().CustomResources = &total
	}
}

// kinds returns the CRDs of the packages that are counted.
func (c *Counts) kinds(ctx context.Context) (map[v1.Package][]string, error) {
	all, err := definitions(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	out := map[v1.Package][]string{}
	for _, kind := range []string{v1.ProviderKind, v1.ConfigurationKind} {
		list := v1.NewPackageList(kind)
		if err := c.Client.List(ctx, list); err != nil {
			return nil, err
		}
		for _, p := range list.Packages() {
			if p.GetDeletionTimestamp() != nil || p.GetCondition(v1.TypeReady).Status != corev1.ConditionTrue ||
				kind == v1.ProviderKind && !c.Runs(p.GetName()) {
				continue
			}
			composed, err := c.composed(ctx, p)
			if err != nil {
				return nil, err
			}
			for i := range all {
				if isOwnedBy(&all[i], p) || slices.ContainsFunc(all[i].OwnerReferences, func(o metav1.OwnerReference) bool {
					return composed[o.Kind+"/"+o.Name]
				}) {
					out[p] = append(out[p], all[i].Name)
				}
			}
		}
	}
	return out, nil
}

// composed returns the XRDs and MRDs of a package, as KIND/NAME.
func (c *Counts) composed(ctx context.Context, p v1.Package) (map[string]bool, error) {
	revisions, err := state.RevisionsOf(ctx, c.Client, p)
	out := map[string]bool{}
	for _, rev := range revisions {
		for _, ref := range revision.Objects(rev) {
			if ref.Kind != plan.DefinitionKind && isDefining(ref.Kind) {
				out[ref.Kind+"/"+ref.Name] = true
			}
		}
	}
	return out, err
}
