// Package install decides whether a package can be installed. Its checks come before the first write of an object of
// the package. The manager makes them for each active revision, and stops at the first that fails; a plan makes the
// same checks, in the same order, for the revision that would become active, and lists all that fail.
package install

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Candidate is a revision that is installed, or that a plan would install.
type Candidate struct {
	revision.Set
	Content *xpkg.Package
	Objects *desired.Objects
	// ToAllow is the command that consents to its webhooks.
	ToAllow string
}

// Facts reads what the checks of one candidate need to know about the cluster and the manager. Nothing is read that no
// check needs.
type Facts interface {
	// Permissions returns the facts from which the permissions of the runtime are derived; none if the manager grants no
	// permissions.
	Permissions(ctx context.Context) (rbac.Input, error)
	// Policy returns the policy for requested permissions.
	Policy(ctx context.Context) (rbac.Policy, error)
	// Granted returns the rules that the package has, cluster-wide and in the namespace of its runtime.
	Granted(ctx context.Context, in rbac.Input) (everywhere, within []rbacv1.PolicyRule, err error)
	// ApprovesIncrease reports whether all permissions that the package does not have yet need approval.
	ApprovesIncrease() bool
	// CanGrant fails with PermissionMissing for permissions that the manager does not have itself. It returns nil if that
	// is not known.
	CanGrant(ctx context.Context, in rbac.Input) error
	// Crossplane fails with IncompatibleCrossplane for content that does not work with the version of Crossplane in the
	// cluster.
	Crossplane(ctx context.Context, meta xpkg.Meta) error
}

// Stage is a check of a candidate, and the place of the check in the order of all.
type Stage string

// The checks.
const (
	// Sharing fails with SharedWebhook; see [revision.CheckShared].
	Sharing Stage = "Sharing"
	// Definitions fails with ReservedDefinition for kinds that belong to Kubernetes, Crossplane or xpkg.
	Definitions Stage = "Definitions"
	// Policy fails with PermissionDenied for requests that the policy does not allow.
	Policy Stage = "Policy"
	// Approval fails with PermissionEscalation or PermissionIncrease for permissions that wait for the approval of a user.
	Approval Stage = "Approval"
	// Grants fails with PermissionMissing.
	Grants Stage = "Grants"
	// Webhooks fails with WebhooksNotAllowed for rules without consent that cover resources of others.
	Webhooks Stage = "Webhooks"
	// Crossplane fails with IncompatibleCrossplane.
	Crossplane Stage = "Crossplane"
	// Runtime fails if the runtime of the package is refused. The manager checks it when it prepares the runtime.
	Runtime Stage = "Runtime"
)

// Stages returns the checks that a [Review] makes, in their order.
func Stages() []Stage {
	return []Stage{Sharing, Definitions, Policy, Approval, Grants, Webhooks, Crossplane}
}

// Review checks one candidate.
type Review struct {
	Candidate
	Facts

	// Unapproved are the permissions that the check Approval has found, and Unallowed the rules of webhooks that Webhooks
	// has.
	Unapproved []rbacv1.PolicyRule
	Unallowed  []desired.WebhookRule

	requested *requested
}

// requested are the permissions of a candidate, and the policy that allows them, or the reason why they are denied or
// not known.
type requested struct {
	in     rbac.Input
	policy rbac.Policy
	err    error
}

// First makes checks in the order of [Stages], and returns the failure of the first that fails.
func (r *Review) First(ctx context.Context, some ...Stage) error {
	for _, s := range Stages() {
		if !slices.Contains(some, s) {
			continue
		}
		if err := r.Check(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Check makes one check. It fails with an error of a code that is listed at the stage, or with the reason why the check
// is not possible.
func (r *Review) Check(ctx context.Context, s Stage) error {
	switch s {
	case Sharing:
		return revision.CheckShared(r.Package, r.Content)
	case Definitions:
		return rbac.CheckDefined(r.Objects.Offered())
	case Policy:
		return r.permissions(ctx).err
	case Approval:
		return r.checkApproval(ctx)
	case Grants:
		if p := r.permissions(ctx); p.err == nil {
			return r.CanGrant(ctx, p.in)
		}
	case Webhooks:
		return r.checkWebhooks()
	case Crossplane:
		if !r.Revision.RevisionSpec().IgnoreCrossplaneConstraints {
			return r.Facts.Crossplane(ctx, r.Content.Meta)
		}
	}
	return nil
}

// permissions reads the permissions and the policy once.
func (r *Review) permissions(ctx context.Context) *requested {
	if r.requested != nil {
		return r.requested
	}
	p := &requested{}
	r.requested = p
	if p.in, p.err = r.Permissions(ctx); p.err != nil || len(p.in.Requests) == 0 {
		return p
	}
	if p.policy, p.err = r.Facts.Policy(ctx); p.err == nil {
		p.err = p.policy.Check(p.in.Requests)
	}
	return p
}

func (r *Review) checkApproval(ctx context.Context) error {
	p := r.permissions(ctx)
	// The first revision of a package is no increase.
	increase := r.ApprovesIncrease() && len(r.Siblings) > 1
	if p.err != nil || !increase && len(rbac.Escalating(p.policy.Allow, nil, nil, p.in)) == 0 {
		return nil // The check Policy returns the error.
	}
	everywhere, within, err := r.Granted(ctx, p.in)
	if err != nil {
		return err
	}
	r.Unapproved, err = permission.CheckApproval(r.Revision, p.in, everywhere, within, p.policy.Allow, increase)
	return err
}

func (r *Review) checkWebhooks() error {
	rules, err := r.Objects.OutsideWebhookRules()
	if err != nil {
		return err
	}
	if r.Unallowed = webhooks.Unallowed(rules, r.Package, r.Revision); len(r.Unallowed) == 0 {
		return nil
	}
	return webhooks.NotAllowed(revision.ObjectName(r.Package), webhooks.Strings(r.Unallowed), r.ToAllow)
}
