package revisions

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

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
