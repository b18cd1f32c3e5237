package datadir

import (
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of the data directory that the child process reports too.
var (
	ErrInUse    = child.ErrDataDirInUse
	ErrUnusable = child.ErrDataDirUnusable
)

// Failures of the data directory.
var (
	ErrForeign = errcode.Code{
		Name: "DataDirForeign", Class: errcode.Conflict,
		Cause: "The directory contains files that xpkg did not create.",
		Fix:   "Choose an empty directory, or one that does not exist yet, with --data-dir.",
	}
	ErrUnsafe = errcode.Code{
		Name: "DataDirUnsafe", Class: errcode.Usage,
		Cause: "The data directory belongs to another user, or other users can write to it or replace it.",
		Fix:   "Choose a directory of your own with --data-dir, or correct the owner and the mode of this one.",
	}
	ErrVersion = errcode.Code{
		Name: "DataDirVersion", Class: errcode.Unsupported,
		Cause: "Another version of xpkg created the data directory, with a layout that this version does not support.",
		Fix:   "Use the version of xpkg that created it, or choose another directory with --data-dir.",
	}
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrForeign, ErrUnsafe, ErrVersion} }
