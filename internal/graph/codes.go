package graph

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes for dependencies.
var (
	ErrDependencyMissing = errcode.Code{
		Name: "DependencyMissing", Class: errcode.Conflict,
		Cause: "A package that this package depends on is not installed.",
		Fix:   "No action is needed if the manager installs dependencies. Otherwise install the packages that the message names with `xpkg install`.",
	}
	ErrDependencyVersion = errcode.Code{
		Name: "DependencyVersion", Class: errcode.Conflict,
		Cause: "A package that this package depends on is installed at a version that does not match.",
		Fix:   "Update the dependency to a version within the constraint that the message names, with `xpkg update`; or let the manager update dependencies, with --dependency-upgrades=Upgrade after `xpkg up` or `xpkg manager`, or with UpgradeOrDowngrade if an older version is required.",
	}
	ErrDependencyComing = errcode.Code{
		Name: "DependencyComing", Class: errcode.Unhealthy,
		Cause: "A package that this package depends on is being installed, or is being updated to a version that matches.",
		Fix:   "No action needed; it continues automatically. If the dependency reports an error, fix that first.",
	}
	// ErrDependencyName is the code for a dependency for which no object name is available.
	ErrDependencyName = errcode.Code{
		Name: "DependencyName", Class: errcode.Conflict,
		Cause: "A dependency cannot be installed, because packages of another repository have both names that it could have.",
		Fix:   "Install the dependency yourself under a name of your choice; it is recognized by its repository.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrDependencyComing,
		ErrDependencyMissing,
		ErrDependencyName,
		ErrDependencyVersion,
	}
}
