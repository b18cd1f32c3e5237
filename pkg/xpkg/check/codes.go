package check

import (
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrAnnotationsTooLarge,
		ErrBooleanProperty,
		ErrCABundleIgnored,
		ErrCRDName,
		ErrDeprecatedCRD,
		ErrDuplicateCRDName,
		ErrFarReaching,
		ErrHiddenName,
		ErrInvalidCRD,
		ErrInvalidInputSchema,
		ErrInvalidLicense,
		ErrInvalidMetaLabels,
		ErrInvalidPackageObject,
		ErrInvalidSource,
		ErrInvalidXRD,
		ErrLargeObject,
		ErrMetaAnnotationsTooLarge,
		ErrMissingAnnotation,
		ErrNeedlessConversion,
		ErrNotForCrossplane2,
		ErrSchemaTooLarge,
		ErrStorageVersion,
		ErrUnapprovedGroup,
		ErrUnknownCapability,
		ErrUnknownField,
		ErrUnserved,
		ErrUnsupportedCRD,
	}
}

// ErrUnknownCapability is the code for an unknown capability.
var ErrUnknownCapability = errcode.Code{
	Name: "UnknownCapability", Class: errcode.Invalid,
	Cause: "The metadata names a capability that is not known; it has no effect.",
	Fix:   "Use composition or operation for a Function, safe-start for a Provider.",
}

// severities holds the codes that are not errors under every policy.
var severities = xpkg.Severities{
	ErrMissingAnnotation.Name: {Build: xpkg.Warning, Install: xpkg.Off},
	ErrInvalidLicense.Name:    {Build: xpkg.Warning, Install: xpkg.Off},
	ErrInvalidSource.Name:     {Build: xpkg.Warning, Install: xpkg.Off},
	ErrUnknownCapability.Name: {Build: xpkg.Warning, Install: xpkg.Warning},
	ErrCABundleIgnored.Name:   {Build: xpkg.Warning, Install: xpkg.Warning},
	ErrDeprecatedCRD.Name:     {Build: xpkg.Warning, Install: xpkg.Warning},
	ErrBooleanProperty.Name:   {Build: xpkg.Warning, Install: xpkg.Off},

	ErrUnknownField.Name: {Build: xpkg.Warning, Install: xpkg.Off},

	// Concerns prevent no install; a plan shows them.
	ErrHiddenName.Name:         {Build: xpkg.Warning, Install: xpkg.Off},
	ErrFarReaching.Name:        {Build: xpkg.Warning, Install: xpkg.Off},
	ErrLargeObject.Name:        {Build: xpkg.Warning, Install: xpkg.Off},
	ErrNeedlessConversion.Name: {Build: xpkg.Warning, Install: xpkg.Off},

	// The plan decides at install.
	ErrUnserved.Name: {Build: xpkg.Error, Install: xpkg.Off},

	xpkg.ErrReservedKey.Name: {Build: xpkg.Error, Install: xpkg.Warning},

	// A retraction of other versions does not affect the version itself.
	catalog.ErrInvalidStatus.Name: {Build: xpkg.Error, Install: xpkg.Warning},

	// The CRDs in the cluster decide at install.
	ErrNotForCrossplane2.Name: {Build: xpkg.Warning, Install: xpkg.Off},

	ErrInvalidXRD.Name: {Build: xpkg.Error, Install: xpkg.Warning},

	// This does not prevent an install, and upstream does not check it.
	ErrInvalidInputSchema.Name: {Build: xpkg.Error, Install: xpkg.Warning},
}
