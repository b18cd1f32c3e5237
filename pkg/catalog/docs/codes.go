package docs

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of errors.
var (
	ErrDamaged = errcode.Code{
		Name: "DamagedDocumentation", Class: errcode.Untrusted,
		Cause: "A documentation pack is truncated or damaged, or does not follow its format.",
		Fix:   "Delete the pack; the index builds it again from the package.",
	}
	ErrNotFound = errcode.Code{
		Name: "KindNotDocumented", Class: errcode.NotFound,
		Cause: "The documentation of a package does not contain the kind.",
		Fix:   "Check the spelling; `xpkg show` with the name of the package lists its kinds.",
	}
	ErrTooLarge = errcode.Code{
		Name: "DocumentationTooLarge", Class: errcode.Limit,
		Cause: "A schema, readme or icon is larger than a documentation pack can contain.",
		Fix:   "Make the named part smaller and publish the package again.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrDamaged,
		ErrTooLarge,
		ErrNotFound,
	}
}
