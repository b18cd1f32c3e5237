package access

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrPolicy is the code for an access configuration that cannot be used.
var ErrPolicy = errcode.Code{
	Name: "RegistryPolicy", Class: errcode.Invalid,
	Cause: "The access configuration of the registry server is malformed.",
	Fix:   "Correct the field in the message; docs/guides/run-a-registry.md describes the file.",
}

// ErrReservedName is the code for a repository name that cannot be created.
var ErrReservedName = errcode.Code{
	Name: "ReservedName", Class: errcode.Conflict,
	Cause: "The name of a new repository is reserved, or too similar to the name of an existing one.",
	Fix:   "Push to another name.",
}

// ErrScope is the code for a scope of a token that is malformed.
var ErrScope = errcode.Code{
	Name: "TokenScope", Class: errcode.Usage,
	Cause: "The scope of a token has no repository, no action, or an unknown one.",
	Fix:   "Name repositories such as acme/boats or acme/*, and actions such as publish.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{ErrPolicy, ErrReservedName, ErrScope}
}
