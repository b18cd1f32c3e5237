package v1

// Annotations with which an author describes a package. xpkg specification,
// Object Annotations.
const (
	// AnnotationMaintainer names the maintainers of the package, as a short text.
	AnnotationMaintainer = "meta.crossplane.io/maintainer"
	// AnnotationSource is the URL of the package's source.
	AnnotationSource = "meta.crossplane.io/source"
	// AnnotationLicense is the SPDX identifier of the source's licence.
	AnnotationLicense = "meta.crossplane.io/license"
	// AnnotationDescription is the package in one sentence.
	AnnotationDescription = "meta.crossplane.io/description"
	// AnnotationReadme is a longer description.
	AnnotationReadme = "meta.crossplane.io/readme"
)

// Capabilities that the package manager interprets. Two spellings name the same capability if
// their letters and digits are equal, ignoring case: SafeStart is safe-start.
const (
	// CapabilityComposition on a Function: it can take part in composition. A
	// Function without any capability has this one.
	CapabilityComposition = "composition"
	// CapabilityOperation on a Function: it can take part in operations.
	CapabilityOperation = "operation"
	// CapabilitySafeStart on a Provider: it works while none of its managed
	// resources are active.
	CapabilitySafeStart = "safe-start"
)
