package rights

import (
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// Codes for rights that are not given.
var (
	ErrPermissionMissing = failure.Register(failure.Code{
		Name: "PermissionMissing", Class: failure.Unauthorized,
		Cause: "The identity of xpkg lacks permissions that it would have to give to a package: nobody may give what they do not have.",
		Fix:   "Have an administrator apply a role with the permissions that the message names.",
	})
	ErrPermissionIncrease = failure.Register(failure.Code{
		Name: "PermissionIncrease", Class: failure.Invalid,
		Cause: "A new version of a package asks for more permissions than the one that runs, and the policy wants somebody to approve that.",
		Fix:   "Look at what the new version adds, and approve its revision or stay with the version that runs.",
	})
)

// Grantable fails with PermissionMissing when whoever has the rules of have may not
// create roles with those of want.
func Grantable(have, want []rbacv1.PolicyRule) error {
	if missing := Missing(have, want); len(missing) > 0 {
		return ErrPermissionMissing.New(errors.New("it lacks "+describeAll(missing)), "xpkg may not give what the package needs")
	}
	return nil
}

// NotMore fails with PermissionIncrease when the rules of after allow anything that
// those of before do not.
func NotMore(before, after []rbacv1.PolicyRule) error {
	if added, _ := Diff(before, after); len(added) > 0 {
		return ErrPermissionIncrease.New(errors.New("it adds "+describeAll(added)), "the new version asks for more permissions")
	}
	return nil
}
