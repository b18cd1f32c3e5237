package revisions

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// restoredObjects returns the objects that a plan creates although a revision of the package has written them
// before: another client has deleted them.
func restoredObjects(p plan.Plan, known map[plan.Ref]plan.Written) []plan.Ref {
	var out []plan.Ref
	for _, c := range p.Changes {
		if c.Action == plan.Create && known[c.Ref].UID != "" {
			out = append(out, c.Ref)
		}
	}
	return out
}

// reportRestored records an event that names the written objects that another client had deleted.
func (r *Reconciler) reportRestored(in *reconciliation, written map[plan.Ref]plan.Written) {
	const most = 10
	var names []string
	for _, ref := range in.restored {
		if _, ok := written[ref]; ok {
			names = append(names, ref.Kind+" "+ref.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	r.API.Status.Events.Eventf(in.Revision, nil, corev1.EventTypeWarning, "ObjectsRestored", "Restore",
		"deleted by another client, and created again: %s", status.Clip(wording.Few(names, most, ", ")))
}
