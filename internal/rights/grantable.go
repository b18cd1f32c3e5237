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

// shownYAML is how much of what is to be applied a message holds, in bytes. There is
// room for some hundreds of resources.
const shownYAML = 16 << 10

// Err is PermissionMissing, with what an administrator can apply for subjects; nil
// when nothing lacks.
func (l Lack) Err(subjects ...rbacv1.Subject) error {
	missing := l.Rules()
	if len(missing) == 0 {
		return nil
	}
	err := ErrPermissionMissing.New(errors.New("it lacks "+describeAll(missing)), "xpkg may not give what the package needs")
	text, yamlErr := l.YAML(subjects...)
	if yamlErr != nil || len(text) > shownYAML {
		return err
	}
	return err.WithDo("Have an administrator apply this; the install then continues by itself.\n\n%s", text)
}

// Increase is PermissionIncrease for rules that a version adds, with how somebody
// approves them; nil when there are none.
func Increase(added []rbacv1.PolicyRule, approval string) error {
	if len(added) == 0 {
		return nil
	}
	return ErrPermissionIncrease.New(errors.New("it adds "+describeAll(added)), "the new version asks for more permissions").
		WithDo("Look at what it adds, and approve that with %s, or stay with the version that runs.", approval)
}
