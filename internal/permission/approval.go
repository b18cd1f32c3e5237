package permission

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

const (
	// AnnotationIncrease on a package, with the value Approve, makes its versions wait
	// that ask for more rights than the one before them.
	AnnotationIncrease = "xpkg.dev/permission-increase"
	// AnnotationApproved on a revision approves rights that it adds. Its value is their
	// fingerprint, so that it approves these rights and no others.
	AnnotationApproved = "xpkg.dev/approved-permissions"
)

// Approved reports whether somebody has approved what a revision adds.
func Approved(rev v1.PackageRevision, added []rbacv1.PolicyRule) bool {
	return rev.GetAnnotations()[AnnotationApproved] == rights.Fingerprint(added)
}

// Unapproved is PermissionIncrease, unless nothing is added or it was approved.
func Unapproved(rev v1.PackageRevision, added []rbacv1.PolicyRule) error {
	if Approved(rev, added) {
		return nil
	}
	return rights.Increase(added, fmt.Sprintf("`xpkg approve %s/%s`, which puts the annotation %s: %s on the revision %s",
		strings.ToLower(rev.PackageKind()), rev.GetLabels()[v1.LabelPackage], AnnotationApproved, rights.Fingerprint(added), rev.GetName()))
}
