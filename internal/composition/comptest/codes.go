package comptest

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes of tests.
var (
	ErrNoTests = errcode.Code{
		Name: "NoTests", Class: errcode.NotFound,
		Cause: "There is no test of a composition.",
		Fix:   "Write a CompositionTest of meta.dev.upbound.io/v1alpha1 into a file in the folder tests, such as that of `xpkg init configuration boats`.",
	}
	ErrTestInvalid = errcode.Code{
		Name: "TestInvalid", Class: errcode.Invalid,
		Cause: "A test of a composition cannot be read, or has a field that xpkg does not know.",
		Fix:   "Correct the named field.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrNoTests, ErrTestInvalid} }
