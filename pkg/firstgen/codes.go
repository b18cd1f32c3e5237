package firstgen

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of findings.
var (
	ErrNoApp = errcode.Code{
		Name: "NoApp", Class: errcode.Invalid,
		Cause: "The folder .registry contains no app.yaml.",
		Fix:   "Add .registry/app.yaml with at least a title.",
	}
	ErrInvalidApp = errcode.Code{
		Name: "InvalidApp", Class: errcode.Invalid,
		Cause: "A field of app.yaml has a value that the format does not allow.",
		Fix:   "Correct the named field of app.yaml.",
	}
	ErrVersionMismatch = errcode.Code{
		Name: "VersionMismatch", Class: errcode.Invalid,
		Cause: "The version that a package of the first generation states differs from the tag of the image.",
		Fix:   "Use the stated version as the tag, or remove it from app.yaml, or from the annotation meta.xpkg.dev/version of a converted package.",
	}
	ErrInvalidInstall = errcode.Code{
		Name: "InvalidInstall", Class: errcode.Invalid,
		Cause: "The file install.yaml does not contain exactly one Deployment, or the Deployment is invalid.",
		Fix:   "Keep one Deployment in install.yaml, with a name and containers whose images are references or are omitted.",
	}
	ErrIgnoredSetting = errcode.Code{
		Name: "IgnoredSetting", Class: errcode.Invalid,
		Cause: "A setting of install.yaml that gives a program access to a node or to other objects, or a container beside the controller, has no effect: packages are not trusted.",
		Fix:   "Remove it from install.yaml. An administrator who trusts the package can set it with a DeploymentRuntimeConfig.",
	}
	ErrInvalidBehavior = errcode.Code{
		Name: "InvalidBehavior", Class: errcode.Invalid,
		Cause: "The file behavior.yaml does not describe a templating controller.",
		Fix:   "State source.path, engine.type, and the kind of a CRD of the package in crd.kind and crd.apiVersion. The message names the problem.",
	}
	ErrInvalidMetadata = errcode.Code{
		Name: "InvalidMetadata", Class: errcode.Invalid,
		Cause: "A group.yaml, resource.yaml or UI schema cannot be read.",
		Fix:   "Correct the named file.",
	}
	ErrUnusedMetadata = errcode.Code{
		Name: "UnusedMetadata", Class: errcode.Invalid,
		Cause: "A metadata file applies to no CRD of the package, or other files precede it.",
		Fix:   "Move the file beside its CRD, correct its id or its group, or remove it.",
	}
	ErrMisnamedFile = errcode.Code{
		Name: "MisnamedFile", Class: errcode.Invalid,
		Cause: "A file is not read, because the format reads it under another name only: with the extension .yaml, as an icon in one of the formats svg, png, jpg and gif, in lower case, and CRDs and their metadata below resources.",
		Fix:   "Rename the file as the message says, or remove it.",
	}
	ErrUntypedSchema = errcode.Code{
		Name: "UntypedSchema", Class: errcode.Invalid,
		Cause: "A CRD of the version v1beta1 has fields without a type, which v1 does not allow. Any value is accepted for them.",
		Fix:   "State the types of the fields that the message names.",
	}
	ErrInvalidIcon = errcode.Code{
		Name: "InvalidIcon", Class: errcode.Invalid,
		Cause: "An icon is empty, too large, or not an image of the format that its extension names.",
		Fix:   "Replace the icon with a small SVG, PNG, JPEG or GIF file.",
	}
	ErrNoResources = errcode.Code{
		Name: "NoResources", Class: errcode.Invalid,
		Cause: "The package contains neither a CRD nor a controller.",
		Fix:   "Add CRDs in files named *crd.yaml below .registry/resources.",
	}
	ErrNoRegistryFolder = errcode.Code{
		Name: "NoRegistryFolder", Class: errcode.NotFound,
		Cause: "The image or folder contains no .registry folder.",
		Fix:   "Name the folder that contains .registry, or an image of a first-generation package.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrIgnoredSetting,
		ErrInvalidApp,
		ErrInvalidBehavior,
		ErrInvalidIcon,
		ErrInvalidInstall,
		ErrInvalidMetadata,
		ErrMisnamedFile,
		ErrNoApp,
		ErrNoRegistryFolder,
		ErrNoResources,
		ErrUntypedSchema,
		ErrUnusedMetadata,
		ErrVersionMismatch,
	}
}
