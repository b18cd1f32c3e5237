package xpkg

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
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
// every version. A release of a distribution of Crossplane, and a build of its main branch,
// are supported if their release is.
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
	if !constraint.Check(running) && !(isBuild(running) && constraint.Check(released(running))) {
		return ErrIncompatible.New(
			fmt.Errorf("it requires %.200q", m.Crossplane), "%s %q does not work with Crossplane %s", m.Kind, m.Name,
			running.Original(),
		)
	}
	return nil
}

// described matches the prerelease of a build of a branch: it ends with the number of commits since a tag, and the
// last commit.
var described = lazyregexp.New(`[.-]\d+[.-]g[0-9a-f]{7,40}$`)

// isBuild reports whether a version of Crossplane is a release of a distribution, such as 2.1.1-up.1, or a build of
// the main branch, such as 2.2.0-rc.0.28.g0123456. Both contain what their release contains, although they are
// spelled like prereleases.
func isBuild(v *semver.Version) bool {
	word, _, _ := strings.Cut(strings.ReplaceAll(v.Prerelease(), "-", "."), ".")
	switch strings.ToLower(strings.TrimRight(word, "0123456789")) {
	case "", "a", "alpha", "b", "beta", "canary", "dev", "m", "nightly", "pre", "preview", "rc", "snapshot", "test":
		return described().MatchString(v.Prerelease())
	}
	return true
}

// released returns a version without its prerelease.
func released(v *semver.Version) *semver.Version {
	return semver.New(v.Major(), v.Minor(), v.Patch(), "", "")
}
