package v1

// Annotations with which an author describes a package. See the xpkg specification, "Object
// Annotations".
const (
	// AnnotationMaintainer names the maintainers of the package, as a short text.
	AnnotationMaintainer = "meta.crossplane.io/maintainer"
	// AnnotationSource is the URL of the package's source.
	AnnotationSource = "meta.crossplane.io/source"
	// AnnotationLicense is the SPDX identifier of the source's licence.
	AnnotationLicense = "meta.crossplane.io/license"
	// AnnotationDescription describes the package in one sentence.
	AnnotationDescription = "meta.crossplane.io/description"
	// AnnotationReadme is a longer description.
	AnnotationReadme = "meta.crossplane.io/readme"
)

// Capabilities that the package manager interprets. Names are compared by their letters and
// digits, ignoring case: SafeStart equals safe-start.
const (
	// CapabilityComposition means that a Function can be used in composition. A Function
	// without any capability has this one.
	CapabilityComposition = "composition"
	// CapabilityOperation means that a Function can be used in operations.
	CapabilityOperation = "operation"
	// CapabilitySafeStart means that a Provider works while none of its managed resources are
	// active.
	CapabilitySafeStart = "safe-start"
)
