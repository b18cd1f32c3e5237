package operation

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Approval is what the current revision of a package waits for.
type Approval struct {
	Kind        string              `json:"kind"`
	Package     string              `json:"package"`
	Revision    string              `json:"revision"`
	Permissions []rbacv1.PolicyRule `json:"permissions"`
	Fingerprint string              `json:"fingerprint"`
	Webhooks    []string            `json:"webhooks,omitempty"`
	Objects     []string            `json:"adoptedObjects,omitempty"`

	// Of is the package.
	Of    v1.Package `json:"-"`
	rev   v1.PackageRevision
	hooks []desired.WebhookRule
	// onRevision reports that the manager accepts no consents in annotations of packages.
	onRevision bool
}

// PendingApproval returns the changes for which the current revision of a package waits: none before the package has a
// revision.
func PendingApproval(ctx context.Context, cluster client.Client, p v1.Package) (Approval, error) {
	rev, current := p.NewRevision(), p.PackageStatus().CurrentRevision
	if current == "" {
		return Approval{Kind: p.PackageKind(), Package: p.GetName(), Of: p, rev: rev}, nil
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: current}, rev); client.IgnoreNotFound(err) != nil {
		return Approval{}, apiserver.Classify(err, "read the revision of %s", inventory.ShortName(p))
	}
	counted, err := withAccepted(ctx, cluster, p)
	if err != nil {
		return Approval{}, err
	}
	out := Approval{
		Kind: p.PackageKind(), Package: p.GetName(), Revision: rev.GetName(), Objects: unadoptedObjects(counted, rev),
		Of: p, rev: rev, hooks: unallowedWebhooks(counted, rev), onRevision: counted != p,
	}
	if added := unapproved(rev); len(added) > 0 {
		out.Permissions, out.Fingerprint = added, rbac.Fingerprint(added)
	}
	if len(out.hooks) > 0 {
		out.Webhooks = webhooks.Strings(out.hooks)
	}
	return out, nil
}

// Empty reports whether the package waits for no approval.
func (a Approval) Empty() bool { return len(a.Permissions)+len(a.hooks)+len(a.Objects) == 0 }

// Write records the approval on the revision and the package, which leaves its transaction.
func (a Approval) Write(ctx context.Context, cluster client.Client) error {
	if len(a.Permissions) > 0 {
		// The approval is written to the revision alone.
		if err := leaveTransaction(ctx, cluster, a.Of); err != nil {
			return err
		}
		if err := approve(ctx, cluster, a.rev, permission.AnnotationApproved, a.Fingerprint); err != nil {
			return err
		}
	}
	if a.onRevision {
		if err := a.writeConsents(ctx, cluster); err != nil {
			return err
		}
	}
	if len(a.hooks) > 0 {
		err := annotate(ctx, cluster, a.Of, webhooks.AnnotationAllowed, func(p v1.Package) string {
			return desired.FormatWebhookRules(append(
				desired.ParseWebhookRules(p.GetAnnotations()[webhooks.AnnotationAllowed]), a.hooks...,
			))
		})
		if err != nil {
			return err
		}
	}
	if len(a.Objects) > 0 {
		return annotate(ctx, cluster, a.Of, revision.AnnotationAdopt, func(p v1.Package) string {
			return revision.FormatAdoptions(append(revision.Adoptions(p), a.Objects...))
		})
	}
	return nil
}

// withAccepted returns a package with the consents that the manager accepts: the package itself, unless the manager
// accepts none in annotations of packages.
func withAccepted(ctx context.Context, cluster client.Client, p v1.Package) (v1.Package, error) {
	gap, err := consent.Check(ctx, cluster)
	if err != nil {
		return nil, apiserver.Classify(err, "read the policy for consents")
	}
	if gap == (consent.Gap{}) || gap.IsUnknown {
		return p, nil
	}
	return consent.Without(p), nil
}

// unapproved returns the permissions for which a revision waits, unless they are approved now.
func unapproved(rev v1.PackageRevision) []rbacv1.PolicyRule {
	added := rev.RevisionStatus().UnapprovedPermissions
	if permission.Approved(rev, added) {
		return nil
	}
	return added
}

// unallowedWebhooks returns the webhook rules for which a revision waits, without the rules that the package allows
// now.
func unallowedWebhooks(p v1.Package, rev v1.PackageRevision) []desired.WebhookRule {
	return webhooks.Unallowed(desired.ParseWebhookRules(strings.Join(rev.RevisionStatus().UnallowedWebhooks, ";")), p, rev)
}

// unadoptedObjects returns the objects that a revision waits to adopt, without the objects that the
// package may adopt now.
func unadoptedObjects(p v1.Package, rev v1.PackageRevision) []string {
	return slices.DeleteFunc(slices.Clone(rev.RevisionStatus().ObjectsToAdopt), func(name string) bool {
		return slices.Contains(revision.Adoptions(p, rev), name)
	})
}

// allowedMeanwhile reports whether a failure is a missing consent to permissions, to webhooks or to the adoption of
// objects that the package now has, so that the manager will continue.
func allowedMeanwhile(ctx context.Context, cluster client.Client, p v1.Package, failure error) bool {
	if !errors.Is(failure, webhooks.ErrNotAllowed) && !errors.Is(failure, apply.ErrNeedsAdoption) &&
		!errcode.From(failure).Code.Approval {
		return false
	}
	p, err := withAccepted(ctx, cluster, p)
	if err != nil {
		return false
	}
	rev := p.NewRevision()
	err = cluster.Get(ctx, client.ObjectKey{Name: p.PackageStatus().CurrentRevision}, rev)
	return err == nil && len(unapproved(rev))+len(unallowedWebhooks(p, rev))+len(unadoptedObjects(p, rev)) == 0
}

// annotate writes a consent of the user to a package: the value for the package as it is when it is written, which
// keeps what other clients have consented to, or withdrawn, since it was read. The package leaves its transaction.
func annotate(
	ctx context.Context, cluster client.Client, p v1.Package, key string, value func(v1.Package) string,
) error {
	uid := p.GetUID()
	return patchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		return map[string]any{"uid": uid, "annotations": map[string]any{key: value(p), revision.AnnotationTransaction: nil}},
			nil
	})
}

// writeConsents records the consents on the revision, for a cluster in which the manager does not accept those of
// packages.
func (a Approval) writeConsents(ctx context.Context, cluster client.Client) error {
	if len(a.hooks) > 0 {
		allowed := desired.ParseWebhookRules(a.rev.GetAnnotations()[webhooks.AnnotationAllowed])
		if err := approve(
			ctx, cluster, a.rev, webhooks.AnnotationAllowed, desired.FormatWebhookRules(append(allowed, a.hooks...)),
		); err != nil {
			return err
		}
	}
	if len(a.Objects) == 0 {
		return nil
	}
	return approve(
		ctx, cluster, a.rev, revision.AnnotationAdopt,
		revision.FormatAdoptions(append(revision.Adoptions(a.rev), a.Objects...)),
	)
}

// approve records an approval in an annotation of the revision.
func approve(ctx context.Context, cluster client.Client, rev v1.PackageRevision, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": rev.GetUID(), "annotations": map[string]string{key: value},
	}})
	if err != nil {
		return err
	}
	err = cluster.Patch(ctx, rev, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager))
	return apiserver.Classify(err, "approve %s", rev.GetName())
}

// ApproveTransaction records that a user approves a plan of a transaction, and removes approvals of other plans by this
// user. It returns the transaction with the approval.
func ApproveTransaction(
	ctx context.Context, cluster client.Client, t *v1alpha1.Transaction, digest, user string,
) (*v1alpha1.Transaction, error) {
	uid := t.UID
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(t), t); err != nil {
			return err
		}
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": uid, "resourceVersion": t.ResourceVersion, "annotations": map[string]string{
				fence.AnnotationApprovals: changepolicy.Approve(t.Annotations[fence.AnnotationApprovals], digest, user),
			},
		}})
		if err != nil {
			return err
		}
		return cluster.Patch(ctx, t, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(plan.FieldManager))
	})
	return t, apiserver.Classify(err, "approve the transaction %s", t.Name)
}
