package tocore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// rename requests the names of core for the revisions of all packages, and waits until the manager has replaced them.
func (m *mover) rename(ctx context.Context, report migration.Report) error {
	s, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, f := range s.families {
		if s.isRenamed(f) || s.isBeingRenamed(f) {
			continue
		}
		patch := fmt.Appendf(
			nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, f.GetUID(), revision.AnnotationNames, s.names(),
		)
		if err := m.Client.Patch(
			ctx, f.Package.Package, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager),
		); err != nil {
			return fmt.Errorf("request another name for the revision of %s: %w", f.Name(), err)
		}
	}
	return migration.Wait(ctx, m.Poll, report, func(ctx context.Context) (string, error) {
		s, err := m.read(ctx)
		if err != nil {
			return "", err
		}
		return s.unnamed(), nil
	})
}

// unnamed describes the packages whose revision does not have the name of core yet, or whose former runtime still runs.
func (s *snapshot) unnamed() string {
	var out []string
	for _, f := range s.families {
		switch active := f.Active(); {
		case active == nil || !s.isRenamed(f) || f.PackageStatus().CurrentRevision != active.GetName():
			out = append(out, f.Name()+": its revision with the name of core is not active yet")
		case !revision.Summarize(active).Ready:
			out = append(
				out,
				fmt.Sprintf("%s: %s", f.Name(), cmp.Or(revision.Summarize(active).Message, "its revision is being established")),
			)
		default:
			for _, rev := range f.Revisions {
				if _, runs := s.deployments[rev.GetUID()]; runs && !revision.IsActive(rev) {
					out = append(out, fmt.Sprintf("%s: the runtime of %s still runs", f.Name(), rev.GetName()))
				}
			}
		}
	}
	return strings.Join(out, "; ")
}

// stop scales the manager down, and waits until no manager leads.
func (m *mover) stop(ctx context.Context, report migration.Report) error {
	d := &appsv1.Deployment{}
	err := m.Client.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: managerName}, d)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the Deployment of the manager: %w", err)
	}
	if err == nil && ptr.Deref(d.Spec.Replicas, 1) > 0 {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		if err := m.Client.Patch(ctx, d, patch, client.FieldOwner(plan.FieldManager)); err != nil {
			return fmt.Errorf("stop the manager: %w", err)
		}
	}
	return migration.Wait(ctx, m.Poll, report, func(ctx context.Context) (string, error) {
		s := &snapshot{}
		if err := m.readManager(ctx, s); err != nil || s.managerStopped() {
			return "", err
		}
		return fmt.Sprintf(
			"the manager in the namespace %s still runs (%d pods, Lease held: %t)", m.Namespace, s.pods, s.leads,
		), nil
	})
}
