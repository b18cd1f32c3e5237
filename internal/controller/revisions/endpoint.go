package revisions

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// inheritEndpoint sets the endpoint of the active revision of a Function to the endpoint of the
// previous revision, until its own runtime serves. Callers of functions read the endpoint of the
// active revision, and the previous runtime runs until the new one serves.
func (r *Reconciler) inheritEndpoint(ctx context.Context, in *reconciliation) error {
	fn, ok := in.Revision.(*v1.FunctionRevision)
	if !ok || fn.Status.Endpoint != "" {
		return nil
	}
	newestFirst := slices.SortedFunc(slices.Values(in.Siblings), func(a, b v1.PackageRevision) int {
		return cmp.Compare(b.RevisionSpec().Revision, a.RevisionSpec().Revision)
	})
	for _, sibling := range newestFirst {
		if previous := sibling.(*v1.FunctionRevision); previous.Name != fn.Name && previous.Status.Endpoint != "" {
			fn.Status.Endpoint = previous.Status.Endpoint
			// The endpoint is written at once, because the steps before the runtime may take long.
			if err := r.API.Client.Status().Update(ctx, fn); err != nil {
				return fmt.Errorf("set the endpoint of %s to the endpoint of %s: %w", fn.Name, previous.Name, err)
			}
			return nil
		}
	}
	return nil
}
