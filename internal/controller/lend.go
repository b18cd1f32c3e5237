package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// lend gives the active revision of a function the endpoint of the one before it, until
// it answers itself. Whoever calls functions looks at the active revision alone, and the
// program of the other one runs for as long.
func (r *revisionReconciler) lend(ctx context.Context, f family) error {
	fn, ok := f.rev.(*v1.FunctionRevision)
	if !ok || fn.Status.Endpoint != "" {
		return nil
	}
	siblings := slices.SortedFunc(slices.Values(f.siblings), func(a, b v1.PackageRevision) int {
		return cmp.Compare(b.RevisionSpec().Revision, a.RevisionSpec().Revision)
	})
	for _, sibling := range siblings {
		if was := sibling.(*v1.FunctionRevision); was.Name != fn.Name && was.Status.Endpoint != "" {
			fn.Status.Endpoint = was.Status.Endpoint
			// At once: what comes before the program runs can take its time.
			if err := r.client.Status().Update(ctx, fn); err != nil {
				return fmt.Errorf("lend %s the endpoint of %s: %w", fn.Name, was.Name, err)
			}
			return nil
		}
	}
	return nil
}
