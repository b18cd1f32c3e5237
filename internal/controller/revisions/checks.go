package revisions

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// Checks are the policies that a revision must satisfy before its objects and its dependencies are
// written.
type Checks struct {
	Crossplane *crossplane.Checker
	// Permissions configure the permissions of runtimes; nil if the manager does not manage them.
	Permissions *PermissionOptions
	Held        *permission.ManagerRules
	// Poll is the interval between two lookups of a registry.
	Poll time.Duration
}

// checkShared fails for a revision that needs a runtime, and whose package starts to share its CRDs with namespaces. Its runtime
// continues to run.
func (r *Reconciler) checkShared(_ context.Context, in *install) error {
	return revision.CheckShared(in.Package, in.pkg)
}

// checkCrossplane fails for a revision that does not work with the cluster's version of Crossplane.
func (r *Reconciler) checkCrossplane(ctx context.Context, in *install) error {
	if in.Revision.RevisionSpec().IgnoreCrossplaneConstraints {
		return nil
	}
	return r.Checks.Crossplane.Check(ctx, in.pkg.Meta)
}

// checkWebhooks fails if the webhooks of a revision cover resources that its package does not
// define and the user has not consented to that. It deletes the webhook configurations of the
// revision if the consent was withdrawn.
func (r *Reconciler) checkWebhooks(ctx context.Context, in *install) error {
	status := in.Revision.RevisionStatus()
	status.UnallowedWebhooks = nil
	rules, err := in.objects.OutsideWebhookRules()
	if err != nil {
		return err
	}
	unallowed := webhooks.Unallowed(in.Package, rules)
	if len(unallowed) == 0 {
		return nil
	}
	// A revision that was never established has installed no configuration, so the configurations of its
	// predecessor stay.
	if err := r.deleteWebhooks(ctx, in, webhooks.Only(revision.Objects(in.Revision))); err != nil {
		return err
	}
	status.UnallowedWebhooks = webhooks.Strings(unallowed)
	name := revision.ObjectName(in.Package)
	return webhooks.NotAllowed(name, status.UnallowedWebhooks, "xpkg approve "+name)
}
