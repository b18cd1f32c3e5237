package kube

import (
	"context"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Release gives up control of objects of an inactive revision, except for objects that the active
// revision of the package contains. Objects of kinds that the cluster does not serve any more are
// ignored. It fails with requeue.ErrStale if the revision is being deleted, and returns the plan
// and its writes.
func (a API) Release(
	ctx context.Context, inactive revision.Set, refs []plan.Ref,
) (plan.Plan, map[plan.Ref]plan.Written, error) {
	if i := slices.IndexFunc(inactive.Siblings, revision.IsActive); i >= 0 {
		refs = plan.Without(refs, revision.Objects(inactive.Siblings[i]))
	}
	live, err := a.Cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return plan.Plan{}, nil, err
	}
	p := plan.Deactivate(refs, live, inactive.Requester())
	if len(p.Changes) > 0 {
		// After the deletion of the revision, this write would restore owner references that the
		// garbage collector has removed.
		if err := a.RereadExisting(ctx, inactive.Revision, inactive.Package.NewRevision()); err != nil {
			return plan.Plan{}, nil, err
		}
	}
	written, err := a.Cluster.Run(ctx, p, nil)
	return p, written, err
}
