package v1

// Annotations with which an author describes a package. xpkg specification,
// Object Annotations.
const (
	// AnnotationMaintainer is who maintains the package, as a short text.
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

// Capabilities that mean something to the package manager. Two spellings are the
// same capability when their letters and digits are, whatever their case:
// SafeStart is safe-start.
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
