package rbac

import (
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes for permissions that are not granted.
var (
	ErrPermissionMissing = errcode.Code{
		Name: "PermissionMissing", Class: errcode.Unauthorized,
		Cause: "The identity of xpkg lacks permissions that it would have to grant to a package: Kubernetes only allows granting permissions that the grantor holds.",
		Fix:   "Have an administrator apply a role with the named permissions.",
	}
	ErrPermissionIncrease = errcode.Code{
		Name: "PermissionIncrease", Class: errcode.Invalid, Approval: true,
		Cause: "A new version of a package requests more permissions than the running version, and the policy requires approval.",
		Fix:   "Review the added permissions, then approve the revision with `xpkg approve` and the name of the package, or keep the running version.",
	}
)

// shownYAML limits the manifest in a message, in bytes. It is sufficient for some
// hundreds of resources.
const shownYAML = 16 << 10

// Err returns an error with the code PermissionMissing and a manifest that an
// administrator can apply for subjects. It returns nil if nothing is missing.
func (l Lack) Err(subjects ...rbacv1.Subject) error {
	missing := l.Rules()
	if len(missing) == 0 {
		return nil
	}
	err := ErrPermissionMissing.New(
		errors.New("it lacks "+describeAll(missing)), "xpkg cannot grant the permissions that the package needs",
	)
	text, yamlErr := l.YAML(subjects...)
	if yamlErr != nil || len(text) > shownYAML {
		return err
	}
	return err.WithDo("Have an administrator apply this manifest; the install then continues automatically.\n\n%s", text)
}

// Increase returns an error with the code PermissionIncrease for rules that a version
// adds, with the command that approves them. It returns nil if there are none.
func Increase(added []rbacv1.PolicyRule, approval string) error {
	if len(added) == 0 {
		return nil
	}
	return ErrPermissionIncrease.New(
		errors.New("it adds "+describeAll(added)), "the new version requests more permissions",
	).
		WithDo("Review the added permissions and approve them with %s, or keep the running version.", approval)
}
