package controller

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
)

// Permissions say how the manager gives programs of packages their rights. Without
// them somebody else does.
type Permissions struct {
	// Ceiling is where the ceiling over requests is. Without one only what is
	// dangerous is refused.
	Ceiling permission.CeilingSource
	// Increase says what becomes of a version that asks for more than the one that
	// runs. Empty means AllowIncrease.
	Increase IncreasePolicy
	// Namespaced confines programs to the namespace of the manager, for everything
	// that lies in a namespace.
	Namespaced bool
}

// IncreasePolicy says what becomes of a version that asks for more rights.
type IncreasePolicy string

// The policies for more rights.
const (
	// AllowIncrease gives them, under the ceiling.
	AllowIncrease IncreasePolicy = "Allow"
	// ApproveIncrease waits until a person has approved them.
	ApproveIncrease IncreasePolicy = "Approve"
)

// approves reports whether somebody has to approve more rights of a package. Who may
// edit a package can ask for that, and cannot do without it.
func (p Permissions) approves(pkg v1.Package) bool {
	return p.Increase == ApproveIncrease || pkg.GetAnnotations()[permission.AnnotationIncrease] == string(ApproveIncrease)
}
