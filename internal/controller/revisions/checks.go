package revisions

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// Checks are the policies that a revision must satisfy before anything of it, or of its dependencies, is
// written.
type Checks struct {
	Crossplane *crossplane.Checker
	// Permissions configure the permissions of runtimes; nil if the manager does not manage them.
	Permissions *PermissionOptions
	Held        *permission.ManagerRules
	// Poll is the interval between two look-ups of a registry.
	Poll time.Duration
}

// checkCrossplane fails for a revision that does not work with the cluster's version of Crossplane.
func (r *Reconciler) checkCrossplane(ctx context.Context, in *install) error {
	if in.Revision.RevisionSpec().IgnoreCrossplaneConstraints {
		return nil
	}
	return r.Checks.Crossplane.Check(ctx, in.pkg.Meta)
}

// checkWebhooks fails if the webhooks of a revision cover resources that its package does not define
// without the consent of the user. It deletes the configurations of a revision whose consent was
// withdrawn.
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
	// A revision that was not established has installed none: the configurations of its predecessor stay.
	if err := r.deleteWebhooks(ctx, in, webhooks.Only(revision.Objects(in.Revision))); err != nil {
		return err
	}
	status.UnallowedWebhooks = webhooks.Strings(unallowed)
	name := revision.ObjectName(in.Package)
	return webhooks.NotAllowed(name, status.UnallowedWebhooks, "xpkg approve "+name)
}
