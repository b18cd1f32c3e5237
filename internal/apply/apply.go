package apply

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Content returns the canonical JSON of an object of the package.
type Content func(plan.Ref) ([]byte, error)

// Run carries out p, with one call for each change, and returns the written objects, including those written before
// an error. A plan with refusals writes nothing.
//
// Custom resources are migrated before the first stage. A stage of the plan starts after the previous one has finished.
// When a write fails or ctx is canceled, pending calls finish and no others start, so the next plan continues from
// there. Every error has a code.
func (c *Cluster) Run(ctx context.Context, p plan.Plan, content Content) (map[plan.Ref]plan.Written, error) {
	if len(p.Refusals) > 0 {
		return nil, Refused(p.Refusals, "objects of the package cannot be established")
	}
	if err := checkMetadata(p.Changes); err != nil {
		return nil, err
	}
	r := run{cluster: c, content: content, written: make(map[plan.Ref]plan.Written, len(p.Changes))}
	var err error
	if p.Changes, err = c.migrate(ctx, p.Changes, content); err != nil {
		return nil, err
	}
	for _, changes := range p.Stages() {
		if err := r.stage(ctx, changes); err != nil {
			return r.written, err
		}
	}
	return r.written, nil
}

// run is the execution of one plan.
type run struct {
	cluster *Cluster
	content Content
	mu      sync.Mutex
	written map[plan.Ref]plan.Written
}

func (r *run) stage(ctx context.Context, changes []plan.Change) error {
	group, going := errgroup.WithContext(ctx)
	// More calls cannot be in progress, so more workers are not needed.
	group.SetLimit(limiter.MaxLimit)
	for _, ch := range changes {
		group.Go(func() error { return r.one(going, ch) })
	}
	return group.Wait()
}

// one carries out a change, unless ctx has ended.
func (r *run) one(ctx context.Context, ch plan.Change) error {
	written, err := r.cluster.write(ctx, ch, r.content)
	if err != nil {
		if isGenerated(ch.Ref) {
			err = ClassifyGenerated(err)
		}
		return classify(err, "%s %s %s", ch.Action, ch.Ref.Kind, ch.Ref.Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[ch.Ref] = written
	return nil
}
