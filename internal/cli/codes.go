package cli

import (
	"slices"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/artifact"
	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/compose"
	"github.com/xpkg-dev/xpkg/internal/cli/config"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/controlplane"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/dependency"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/history"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/packages"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func init() {
	operation.Known = func() []errcode.Code { return slices.Concat(Codes(), errcodes.All()) }
}

// Codes returns the error codes of all commands.
func Codes() []errcode.Code {
	return slices.Concat(
		apiserver.Codes(), artifact.Codes(), author.Codes(), compose.Codes(), config.Codes(), connection.Codes(),
		content.Codes(), controlplane.Codes(), dependencies.Codes(), dependency.Codes(), flags.Codes(), history.Codes(),
		inventory.Codes(), location.Codes(), manager.Codes(), operation.Codes(), packages.Codes(), terminal.Codes(),
		versions.Codes(),
	)
}
