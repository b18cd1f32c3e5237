package format

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrIncompatible is the code for a package that is made for other versions of
// Crossplane than the one that runs.
var ErrIncompatible = failure.Register(failure.Code{
	Name: "IncompatibleCrossplane", Class: failure.Unsupported,
	Cause: "The package's constraint for the version of Crossplane does not hold for the version that runs.",
	Fix:   "Install a version of the package that is made for this version, or tell the package manager to ignore the constraint.",
})

// Compatible says whether the package is made for a version of Crossplane. A
// package without a constraint is made for every version. The error is a failure
// that names the version and the constraint.
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
		return ErrIncompatible.New(fmt.Errorf("it is made for %.200q", m.Crossplane), "%s %q does not work with Crossplane %s", m.Kind, m.Name, running.Original())
	}
	return nil
}
