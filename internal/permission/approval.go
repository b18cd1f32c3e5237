package permission

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// AnnotationIncrease on a package, with the value Approve, makes versions that request more permissions than the
	// previous version wait for approval. On the Lock, it announces that the manager is configured so for all packages.
	AnnotationIncrease = "xpkg.dev/permission-increase"
	// ApproveIncrease is the value of AnnotationIncrease.
	ApproveIncrease = "Approve"
	// AnnotationApproved on a revision approves its permissions that need approval. The
	// value is their fingerprint, so that the approval is valid for these permissions only.
	AnnotationApproved = "xpkg.dev/approved-permissions"
)

// ApprovesIncrease reports whether a package, or the Lock for all packages, requires the approval of every increase of
// permissions.
func ApprovesIncrease(o metav1.Object) bool {
	return o.GetAnnotations()[AnnotationIncrease] == ApproveIncrease
}

// Inherits reports whether a revision keeps the permissions of another revision of its package without another
// approval: an approval applies to the repository of its revision.
func Inherits(rev, from v1.PackageRevision) bool {
	return rev.GetName() == from.GetName() || revision.Source(rev) == revision.Source(from)
}

// Approved reports whether permissions of a revision are approved.
func Approved(rev v1.PackageRevision, rules []rbacv1.PolicyRule) bool {
	return rev.GetAnnotations()[AnnotationApproved] == rbac.Fingerprint(rules)
}

// CheckApproval returns the permissions of a revision that wait for approval, with the
// error PermissionIncrease or PermissionEscalation. Everywhere and within are the rules
// that the package has, cluster-wide and in the namespace of its runtime. With increase,
// every permission beyond them needs approval, and otherwise only permissions that
// amount to control of the cluster and are not in the allow list of the policy.
func CheckApproval(
	rev v1.PackageRevision, in rbac.Input, everywhere, within []rbacv1.PolicyRule, allow []rbac.Rule, increase bool,
) ([]rbacv1.PolicyRule, error) {
	needed := rbac.Escalating(allow, everywhere, within, in)
	explain := rbac.EscalationError
	if increase {
		needed, explain = rbac.Beyond(everywhere, within, in), rbac.Increase
	}
	if len(needed) == 0 || Approved(rev, needed) {
		return nil, nil
	}
	return needed, explain(needed, approvalCommand(rev, needed))
}

// approvalCommand describes how to approve permissions of a revision.
func approvalCommand(rev v1.PackageRevision, rules []rbacv1.PolicyRule) string {
	return fmt.Sprintf("`xpkg approve %s/%s`, which sets the annotation %s: %s on the revision %s",
		strings.ToLower(rev.PackageKind()), rev.GetLabels()[v1.LabelPackage], AnnotationApproved, rbac.Fingerprint(rules),
		rev.GetName())
}
