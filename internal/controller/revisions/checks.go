package revisions

import (
	"context"
	"errors"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Checks are the policies that a revision must satisfy before its objects and its dependencies are
// written.
type Checks struct {
	Crossplane *crossplane.Checker
	// Permissions configure the permissions of runtimes; nil if the manager does not manage them.
	Permissions *PermissionOptions
	Held        *permission.ManagerRules
	// Consents returns the gap in the fence of consents.
	Consents func(context.Context) (consent.Gap, error)
	// WatchesConsents reports that the manager watches the fence.
	WatchesConsents bool
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

// unaccepted is a package whose consents do not count because their fence is not in force.
type unaccepted struct {
	pkg v1.Package
	gap consent.Gap
}

// acceptConsents removes the consents of the package from in unless their fence is in force: any user who may write packages could have
// given them. Consents in annotations of the revision count.
func (r *Reconciler) acceptConsents(ctx context.Context, in *install) error {
	if !consent.IsGiven(in.Package) {
		return nil
	}
	gap, err := r.Checks.Consents(ctx)
	if err != nil || gap == (consent.Gap{}) {
		return err
	}
	in.unaccepted = &unaccepted{in.Package, gap}
	in.Package = consent.Without(in.Package)
	return nil
}

// explain adds to a missing consent why the one in the annotation of the package does not count.
func (u *unaccepted) explain(err error) error {
	if u == nil || !errors.Is(err, webhooks.ErrNotAllowed) && !errors.Is(err, apply.ErrNeedsAdoption) {
		return err
	}
	failed := errcode.From(err)
	return failed.WithDo("%s", u.gap.Advise(u.pkg))
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
	unallowed := webhooks.Unallowed(rules, in.Package, in.Revision)
	if len(unallowed) == 0 {
		return nil
	}
	// A revision that was never established has installed no configuration, so the configurations of its
	// predecessor stay. A consent that does not count is not withdrawn.
	if in.unaccepted == nil || len(webhooks.Unallowed(rules, in.unaccepted.pkg, in.Revision)) > 0 {
		if err := r.deleteWebhooks(ctx, in, webhooks.Only(revision.Objects(in.Revision))); err != nil {
			return err
		}
	}
	status.UnallowedWebhooks = webhooks.Strings(unallowed)
	name := revision.ObjectName(in.Package)
	return webhooks.NotAllowed(name, status.UnallowedWebhooks, "xpkg approve "+name)
}
