package registry

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrServer is the code for a registry server that cannot work.
var ErrServer = errcode.Code{
	Name: "RegistryServer", Class: errcode.Unavailable,
	Cause: "The registry server cannot use its folder, its address or its backend.",
	Fix:   "Correct the cause in the message, and start the server again.",
}

// ErrDamaged is the code for a repository whose files in the folder of the server are damaged.
var ErrDamaged = errcode.Code{
	Name: "DamagedRepository", Class: errcode.Unavailable,
	Cause: "A file of the repository in the folder of the registry server is missing or damaged, such as after a power failure or on a full disk.",
	Fix:   "Restore the file that the log of the server names from a backup, or move the folder of the repository away and push its versions again.",
}

// ErrForbidden is the code for a change that the credentials do not allow.
var ErrForbidden = errcode.Code{
	Name: "RegistryForbidden", Class: errcode.Unauthorized,
	Cause: "The credentials do not allow the action on the repository.",
	Fix:   "Create a token with the action: `xpkg registry token create --help` shows how.",
}

// ErrPublished is the code for the deletion of a version that others can rely on.
var ErrPublished = errcode.Code{
	Name: "PublishedVersion", Class: errcode.Conflict,
	Cause: "A version can be deleted for 72 hours, as long as no package depends on it.",
	Fix:   "Yank it with `xpkg registry yank`: new installations do not select it then.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{ErrDamaged, ErrForbidden, ErrPublished, ErrServer}
}
