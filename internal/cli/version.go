package cli

import (
	"fmt"
	"runtime"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/version"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(env *terminal.Env) error {
	_, err := fmt.Fprintf(env.Stdout, "xpkg %s (%s, %s/%s)\n", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
