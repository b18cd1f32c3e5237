// Command xpkg is the package manager for Crossplane control planes. It also
// serves as a plug-in of kubectl when it is installed as kubectl-crossplane.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/descriptors"
	_ "github.com/xpkg-dev/xpkg/internal/gcstart"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func main() {
	// A shell, a terminal multiplexer or an editor may leave descriptors open. Credential
	// helpers, the control plane and the runtimes of packages must not get them.
	if err := descriptors.CloseOnExec(descriptors.FirstInherited); err != nil {
		fmt.Fprintln(os.Stderr, "error: cannot close inherited file descriptors:", err)
		os.Exit(errcode.Internal.Exit)
	}
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	code := cli.Main(ctx, os.Args, cli.System())
	stop()
	os.Exit(code)
}

// endSignals returns the signals that end a command in order. A closed terminal sends SIGHUP,
// except to a command that was started with nohup, which ignores it.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
