package provide

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes for kinds.
var (
	ErrAmbiguous = errcode.Code{
		Name: "AmbiguousKind", Class: errcode.Conflict,
		Cause: "Several packages provide the kind, or it is not certain that the publisher of the only one is entitled to. A wrong choice could install the package of an attacker, so the user decides. Nothing was changed.",
		Fix:   "Run one of the commands in the message. The selection is recorded, and is not changed by other packages that become known later.",
	}
	ErrNoProvider = errcode.Code{
		Name: "NoProvider", Class: errcode.NotFound,
		Cause: "No known package provides the kind, or none of them can be installed. Known are the packages of the cluster, of the lock file and of the indexes, and those that were added to the package cache under a reference.",
		Fix:   "Check the kind with `xpkg search --kind`, add an index that contains the package, or install the package by its name.",
	}
	ErrInvalidKind = errcode.Code{
		Name: "InvalidKind", Class: errcode.Usage,
		Cause: "The text does not name a kind of custom resources.",
		Fix:   "Write KIND.GROUP or KIND.GROUP/VERSION, such as Bucket.s3.aws.upbound.io/v1beta2. KIND can be the plural name of the resource.",
	}
	ErrKindHeld = errcode.Code{
		Name: "KindHeld", Class: errcode.Conflict,
		Cause: "The API server already serves the kind, but not as it was requested: no package holds its CRD, or the package that holds it serves other versions. Or an installed package defines the kind, and it is not established. The provider of a kind is never replaced automatically.",
		Fix:   "Run the command in the message.",
	}
	ErrProviderDown = errcode.Code{
		Name: "ProviderNotRunning", Class: errcode.Unhealthy,
		Cause: "The API server serves the kind, but the package that provides it is not healthy, so its objects are not reconciled.",
		Fix:   "Run `xpkg describe` for the package that the message names.",
	}
	ErrNotProvided = errcode.Code{
		Name: "KindNotProvided", Class: errcode.Untrusted,
		Cause: "The package was selected as the provider of a kind, but its content does not define the kind or does not serve the version.",
		Fix:   "Install a package that defines the kind by its name. If an index lists the kind for this package, report it to the maintainer of the index.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrAmbiguous,
		ErrInvalidKind,
		ErrKindHeld,
		ErrNotProvided,
		ErrNoProvider,
		ErrProviderDown,
	}
}
