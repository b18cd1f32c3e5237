package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Delete deletes the webhook configurations of a package for which selects returns true, except for
// configurations that also have an owner outside of the package.
func Delete(ctx context.Context, cluster *apply.Cluster, set revision.Set, selects func(plan.Live) bool) error {
	var refs []plan.Ref
	for _, rev := range set.All() {
		for _, ref := range revision.Objects(rev) {
			if plan.IsWebhookConfiguration(ref) && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	live, err := cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	for _, change := range plan.Uninstall(live, set.Requester()).Changes {
		if change.Action != plan.Delete || !selects(live[change.Ref]) {
			continue
		}
		logr.FromContextAsSlogLogger(ctx).InfoContext(ctx, "webhook configuration deleted",
			"kind", change.Ref.Kind, "name", change.Ref.Name, "package", set.Package.GetName())
		if err := cluster.Delete(ctx, change.Ref, change.UID, change.ResourceVersion); err != nil {
			return err
		}
	}
	return nil
}

// Any selects all webhook configurations.
func Any(plan.Live) bool { return true }

// Only returns a function that selects the given webhook configurations.
func Only(refs []plan.Ref) func(plan.Live) bool {
	return func(l plan.Live) bool { return slices.Contains(refs, l.Ref) }
}

// Except returns a function that selects all webhook configurations but the given ones.
func Except(refs []plan.Ref) func(plan.Live) bool {
	return func(l plan.Live) bool { return !slices.Contains(refs, l.Ref) }
}
