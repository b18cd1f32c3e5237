// Command xpkg is the package manager for Crossplane control planes. It also
// serves as a plug-in of kubectl when it is installed as kubectl-crossplane.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := cli.Main(ctx, os.Args, cli.System())
	stop()
	os.Exit(code)
}
