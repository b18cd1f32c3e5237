package revisions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
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
	// CountInterval is the interval between two counts of the custom resources that keep a kind active.
	CountInterval time.Duration
}

// checkInstall makes the checks of an active revision that come before its dependencies and its runtime.
func (r *Reconciler) checkInstall(ctx context.Context, in *reconciliation) error {
	return r.check(ctx, in, install.Stages()...)
}

// check makes checks of a revision, and records what they have found in its status. It revokes permissions that were
// granted for requests that the policy does not allow any more, and deletes the webhook configurations of the revision
// if the consent to them was withdrawn.
func (r *Reconciler) check(ctx context.Context, in *reconciliation, stages ...install.Stage) error {
	review := &install.Review{Candidate: r.candidate(in), Facts: &facts{r: r, in: in}}
	failed := review.First(ctx, stages...)
	status := in.Revision.RevisionStatus()
	if slices.Contains(stages, install.Approval) {
		status.UnapprovedPermissions = review.Unapproved
	}
	if slices.Contains(stages, install.Webhooks) {
		status.UnallowedWebhooks = webhooks.Strings(review.Unallowed)
	}
	var err error
	switch {
	case errors.Is(failed, rbac.ErrPermissionDenied):
		err = r.revokeRequests(ctx, in)
	case errors.Is(failed, webhooks.ErrNotAllowed) && !in.unaccepted.allows(in):
		// A revision that was never established has installed no configuration, so the configurations of its predecessor
		// stay.
		err = r.deleteWebhooks(ctx, in, webhooks.Only(revision.Objects(in.Revision)))
	}
	return cmp.Or(err, failed)
}

// candidate returns the revision as the checks see it.
func (r *Reconciler) candidate(in *reconciliation) install.Candidate {
	return install.Candidate{Set: in.Set, Content: in.pkg, Objects: in.objects, ToAllow: "xpkg approve " +
		revision.ObjectName(in.Package)}
}

// facts are the facts about a revision that the cache and the configuration of the manager contain.
type facts struct {
	r  *Reconciler
	in *reconciliation
	// roles is the change of the roles, or nil if it was not planned yet.
	roles *roleChange
}

// Permissions implements [install.Facts].
func (f *facts) Permissions(ctx context.Context) (rbac.Input, error) {
	if f.r.Checks.Permissions == nil {
		return rbac.Input{}, nil
	}
	return f.r.permissionInput(ctx, f.in)
}

// Policy implements [install.Facts].
func (f *facts) Policy(ctx context.Context) (rbac.Policy, error) {
	return f.r.Checks.Permissions.Policy.Read(ctx, f.r.API.Live, f.r.Packages.Namespace)
}

// ApprovesIncrease implements [install.Facts].
func (f *facts) ApprovesIncrease() bool {
	return f.r.Checks.Permissions != nil && f.r.Checks.Permissions.needsApproval(f.in.Package)
}

// Granted implements [install.Facts]. The granted permissions are in the roles of the revisions. A revision that was
// never approved has no roles, so its requests do not count as granted.
func (f *facts) Granted(ctx context.Context, in rbac.Input) (everywhere, within []rbacv1.PolicyRule, err error) {
	grants, err := f.grants(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if grants {
		return f.r.grantedRules(ctx, f.in.Set)
	}
	everywhere, within = rbac.RuntimeRules(in)
	return everywhere, within, nil
}

// CanGrant implements [install.Facts].
func (f *facts) CanGrant(ctx context.Context, in rbac.Input) error {
	if f.r.Checks.Permissions == nil {
		return nil
	}
	grants, err := f.grants(ctx, in)
	if err != nil || !grants {
		return err
	}
	return f.r.Checks.Held.Check(ctx, f.roles.set, f.r.Packages.Namespace)
}

// grants reports whether the roles of the revision differ from the desired ones, in the cache.
func (f *facts) grants(ctx context.Context, in rbac.Input) (bool, error) {
	if f.roles == nil {
		change, err := f.r.planRoles(ctx, f.in.Set, in)
		if err != nil {
			return false, err
		}
		f.roles = &change
	}
	return f.roles.grants(), nil
}

// Crossplane implements [install.Facts].
func (f *facts) Crossplane(ctx context.Context, meta xpkg.Meta) error {
	return f.r.Checks.Crossplane.Check(ctx, meta)
}

// unaccepted is a package whose consents do not count because their fence is not in force.
type unaccepted struct {
	pkg v1.Package
	gap consent.Gap
}

// acceptConsents removes the consents of the package from in unless their fence is in force: any user who may write
// packages could have given them. Consents in annotations of the revision count.
func (r *Reconciler) acceptConsents(ctx context.Context, in *reconciliation) error {
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
	switch {
	case u == nil:
		return err
	case errors.Is(err, apply.ErrBreaksObjects):
		// No command records this consent on the revision.
		return errcode.From(err).Also(
			"The consent in the annotations of %s does not count, because %s. %s", revision.ObjectName(u.pkg), u.gap.Why, u.gap.Fix,
		)
	case errors.Is(err, webhooks.ErrNotAllowed), errors.Is(err, apply.ErrNeedsAdoption):
		return errcode.From(err).WithDo("%s", u.gap.Advise(u.pkg))
	}
	return err
}

// allows reports whether only the fence is missing for the webhooks of a revision: a consent that does not count is not
// withdrawn.
func (u *unaccepted) allows(in *reconciliation) bool {
	if u == nil {
		return false
	}
	rules, err := in.objects.OutsideWebhookRules()
	return err == nil && len(webhooks.Unallowed(rules, u.pkg, in.Revision)) == 0
}
