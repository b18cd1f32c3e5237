package catalog

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of errors.
var (
	ErrConflictingFacts = errcode.Code{
		Name: "ConflictingFacts", Class: errcode.Conflict,
		Cause: "Two sources of an index state different facts about one tag of a repository.",
		Fix:   "Build the index again; if the error persists, name the repository in one source only.",
	}
	ErrIncompleteFacts = errcode.Code{
		Name: "IncompleteFacts", Class: errcode.Internal,
		Cause: "The newest version of a package was not read before its index was updated.",
		Fix:   "Build the index again with `xpkg index build`.",
	}
	ErrInvalidIndex = errcode.Code{
		Name: "InvalidIndex", Class: errcode.Untrusted,
		Cause: "The content of an index contradicts itself or does not follow its format.",
		Fix:   "Do not use the index; ask its operator to build it again with `xpkg index build`.",
	}
	ErrInvalidOwner = errcode.Code{
		Name: "InvalidOwner", Class: errcode.Invalid,
		Cause: "The owner of an API group in an index is not valid, or an API group has several owners.",
		Fix:   "Name one repository, or a prefix of repositories, for each API group.",
	}
	ErrNotAnIndex = errcode.Code{
		Name: "NotAnIndex", Class: errcode.Invalid,
		Cause: "The reference names a package or another artifact, not an index.",
		Fix:   "Name the index of a registry; `xpkg index build` creates one.",
	}
	ErrUnsupportedIndex = errcode.Code{
		Name: "UnsupportedIndex", Class: errcode.Unsupported,
		Cause: "The index has a format of a newer version of xpkg.",
		Fix:   "Install a newer version of xpkg.",
	}
	ErrTruncatedIndex = errcode.Code{
		Name: "TruncatedIndex", Class: errcode.Untrusted,
		Cause: "A part of an index has fewer bytes than its manifest states.",
		Fix:   "Fetch the index again; if the error persists, its registry is damaged.",
	}
	ErrMixedIndex = errcode.Code{
		Name: "MixedIndex", Class: errcode.Untrusted,
		Cause: "A part of an index was changed, or belongs to another state of the index.",
		Fix:   "Fetch the index again; if the error persists, do not trust its registry.",
	}
	ErrInvalidQuery = errcode.Code{
		Name: "InvalidQuery", Class: errcode.Usage,
		Cause: "A search query has an unknown prefix or too many words.",
		Fix:   "Use words and the prefixes kind:, group:, provides:, field: and type:.",
	}
	ErrInvalidStatus = errcode.Code{
		Name: "InvalidStatus", Class: errcode.Invalid,
		Cause: "The status of a version, or a retraction, does not follow its format.",
		Fix:   "Publish the status again.",
	}
	ErrUnindexable = errcode.Code{
		Name: "UnindexablePackage", Class: errcode.Invalid,
		Cause: "A package defines a kind whose names are not valid, or has more versions, kinds or dependencies than an index can contain, alone or with the other packages in a layer.",
		Fix:   "Correct the named object and publish the package again; other packages are not affected.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrConflictingFacts,
		ErrIncompleteFacts,
		ErrInvalidIndex,
		ErrInvalidOwner,
		ErrInvalidQuery,
		ErrInvalidStatus,
		ErrMixedIndex,
		ErrNotAnIndex,
		ErrTruncatedIndex,
		ErrUnindexable,
		ErrUnsupportedIndex,
	}
}
