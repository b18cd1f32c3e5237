package permission

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// AnnotationIncrease on a package, with the value Approve, makes versions that
	// request more permissions than the previous version wait for approval.
	AnnotationIncrease = "xpkg.dev/permission-increase"
	// AnnotationApproved on a revision approves the permissions that it adds. The value
	// is their fingerprint, so that the approval is valid for these permissions only.
	AnnotationApproved = "xpkg.dev/approved-permissions"
)

// Approved reports whether the permissions that a revision adds are approved.
func Approved(rev v1.PackageRevision, added []rbacv1.PolicyRule) bool {
	return rev.GetAnnotations()[AnnotationApproved] == rbac.Fingerprint(added)
}

// Unapproved is PermissionIncrease, unless nothing is added or it was approved.
func Unapproved(rev v1.PackageRevision, added []rbacv1.PolicyRule) error {
	if Approved(rev, added) {
		return nil
	}
	return rbac.Increase(added, fmt.Sprintf("`xpkg approve %s/%s`, which puts the annotation %s: %s on the revision %s",
		strings.ToLower(rev.PackageKind()), rev.GetLabels()[v1.LabelPackage], AnnotationApproved, rbac.Fingerprint(added), rev.GetName()))
}
