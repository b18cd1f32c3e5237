package author

import (
	"github.com/xpkg-dev/xpkg/internal/cli/author/goprogram"
	"github.com/xpkg-dev/xpkg/internal/cli/author/scaffold"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrExtensions,
		ErrFunctionNotBuildable,
		ErrLostCapability,
		ErrNotFirstGeneration,
		goprogram.ErrGoBuild,
		goprogram.ErrNoGo,
		scaffold.ErrFolderNotEmpty,
		ErrRuntimeImage,
	}
}
