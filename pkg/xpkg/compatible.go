package xpkg

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrIncompatible is the code for a package whose constraint excludes the installed
// version of Crossplane.
var ErrIncompatible = errcode.Code{
	Name: "IncompatibleCrossplane", Class: errcode.Unsupported,
	Cause: "The package does not support the installed version of Crossplane.",
	Fix:   "Install a version of the package that supports this version of Crossplane, or set spec.ignoreCrossplaneConstraints.",
}

// Compatible returns nil if the package supports a version of Crossplane, and otherwise
// an error with the version and the constraint. A package without a constraint supports
// every version.
func (m Meta) Compatible(version string) error {
	if m.Crossplane == "" {
		return nil
	}
	constraint, err := semver.NewConstraint(m.Crossplane)
	if err != nil {
		return ErrInvalidConstraint.New(err, "cannot read the constraint of %q", m.Name)
	}
	running, err := semver.NewVersion(version)
	if err != nil {
		return ErrIncompatible.New(err, "%.100q is not a version of Crossplane", version)
	}
	if !constraint.Check(running) {
		return ErrIncompatible.New(fmt.Errorf("it requires %.200q", m.Crossplane), "%s %q does not work with Crossplane %s", m.Kind, m.Name, running.Original())
	}
	return nil
}
