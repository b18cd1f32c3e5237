package bundle

import "github.com/xpkg-dev/xpkg/pkg/errcode"

var (
	// ErrDamaged is the code for a bundle that is not as it was written.
	ErrDamaged = errcode.Code{
		Name: "BundleDamaged", Class: errcode.Untrusted,
		Cause: "A bundle is incomplete, or was changed since it was written. No tag refers to damaged content.",
		Fix:   "Transfer the file again, or write it again with `xpkg bundle save`, and then run `xpkg bundle load` again: it continues.",
	}
	// ErrNotABundle is the code for a file that is no bundle.
	ErrNotABundle = errcode.Code{
		Name: "NotABundle", Class: errcode.Invalid,
		Cause: "The file was not written by xpkg bundle save, or by a newer version of xpkg.",
		Fix:   "Name a file that `xpkg bundle save` has written. To copy another archive, use `xpkg copy`.",
	}
	// ErrBaseMissing is the code for a delta whose other part is not in the registry.
	ErrBaseMissing = errcode.Code{
		Name: "BundleBaseMissing", Class: errcode.Conflict,
		Cause: "The bundle contains only what another bundle lacks, and the registry does not have the content of that other bundle. Nothing was uploaded.",
		Fix:   "Load the bundle that the message names first, with the same destination.",
	}
	// ErrPartialRefused is the code for a registry that does not accept the indexes of a bundle for some platforms.
	ErrPartialRefused = errcode.Code{
		Name: "PartialIndexRefused", Class: errcode.Invalid,
		Cause: "The bundle has the images of some platforms only, and the registry accepts no index whose other images it does not have. Most registries do not, and the one of xpkg does not either.",
		Fix:   "Write the bundle again without --platform.",
	}
	// ErrInUse is the code for a bundle that another process writes.
	ErrInUse = errcode.Code{
		Name: "BundleInUse", Class: errcode.Conflict,
		Cause: "Another process writes the same bundle.",
		Fix:   "Wait until it has ended, or write another file.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{ErrBaseMissing, ErrDamaged, ErrInUse, ErrNotABundle, ErrPartialRefused}
}
