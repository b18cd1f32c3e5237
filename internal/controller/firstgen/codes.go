package firstgen

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of install objects and Packages.
var (
	ErrReference = errcode.Code{
		Name: "InstallReference", Class: errcode.Invalid,
		Cause: "An install object names no package, both a package and a CRD, or a package by an invalid reference.",
		Fix:   "Set either spec.package or spec.crd. The message names the problem.",
	}
	ErrNamespace = errcode.Code{
		Name: "ClusterInstallNamespace", Class: errcode.Unauthorized,
		Cause: "An object that installs something for the whole cluster is in a namespace whose users do not administer the cluster.",
		Fix:   "Create the object in the namespace of the manager, or let an administrator restart the manager as the message describes.",
	}
	ErrProviderExists = errcode.Code{
		Name: "ProviderNotOwned", Class: errcode.Conflict,
		Cause: "The Provider that an install object would maintain exists, and another client created it.",
		Fix:   "Rename the install object, delete the Provider, or hand the Provider over with the annotation in the message.",
	}
	ErrPullSecret = errcode.Code{
		Name: "InstallPullSecret", Class: errcode.Unauthorized,
		Cause: "A ClusterPackageInstall outside of the namespace of the manager names pull secrets. Providers read pull secrets from the namespace of the manager, whose secrets this object must not use.",
		Fix:   "Create the object in the namespace of the manager, or configure the pull secret in an ImageConfig.",
	}
	ErrNotAllowed = errcode.Code{
		Name: "NamespacedPackageNotAllowed", Class: errcode.Unauthorized,
		Cause: "A PackageInstall names a package whose CRDs no administrator has installed for namespaces. CRDs belong to the whole cluster, so the users of a namespace cannot install them.",
		Fix:   "Let an administrator install the package for namespaces with the command in the message.",
	}
	ErrVersion = errcode.Code{
		Name: "NamespacedVersionConflict", Class: errcode.Conflict,
		Cause: "A PackageInstall names another version of a package than the one whose CRDs are installed. All namespaces share the CRDs.",
		Fix:   "Use the version in the message, or let an administrator update the Provider.",
	}
	ErrScope = errcode.Code{
		Name: "ClusterScopeRefused", Class: errcode.Invalid,
		Cause: "A package that needs permissions in the whole cluster cannot be installed in a namespace.",
		Fix:   "Let an administrator install the package with a ClusterPackageInstall in the namespace of the manager.",
	}
	ErrRecordExists = errcode.Code{
		Name: "PackageRecordNotOwned", Class: errcode.Conflict,
		Cause: "A Package or a StackDefinition with the name of an install object exists, and is not the record of this object. It is not changed.",
		Fix:   "Rename the install object, or the Package or StackDefinition.",
	}
	ErrController = errcode.Code{
		Name: "InvalidPackageController", Class: errcode.Invalid,
		Cause: "The Deployment of a Package is invalid.",
		Fix:   "Correct spec.controller.deployment.",
	}
	ErrPermissions = errcode.Code{
		Name: "PackagePermissionRefused", Class: errcode.Invalid,
		Cause: "A Package requests permissions that the users of a namespace cannot give to a controller.",
		Fix:   "Request permissions only for custom resources, ConfigMaps, Events and Secrets, without wildcard groups.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrNamespace,
		ErrScope,
		ErrPullSecret,
		ErrReference,
		ErrController,
		ErrNotAllowed,
		ErrVersion,
		ErrPermissions,
		ErrRecordExists,
		ErrProviderExists,
	}
}
