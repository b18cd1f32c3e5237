package runtime

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// ErrNoProgram is the code for a package without a runnable image.
var ErrNoProgram = errcode.Code{
	Name: "NoProgram", Class: errcode.Invalid, Final: true,
	Cause: "The package contains no runnable image: its image names no program to start, or one that is not among its files. An update to such a package is rolled back at once.",
	Fix:   "Rebuild the package with --embed-runtime-image or --embed-runtime-image-tarball, or name the image in spec.controller.image of its metadata. To install only its CRDs, start the manager with --package-runtime and an entry for the package with the runtime None.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrNoProgram, ErrRuntimeConfig} }
