package cli

import (
	"fmt"
	"runtime"
)

// Version is the version of the program, set by the linker.
var Version = "v0.0.0-dev"

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(env *Env) error {
	_, err := fmt.Fprintf(env.Stdout, "xpkg %s (%s, %s/%s)\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
