package manager

import (
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

// RuntimeInitCmd is the init process of a package runtime, which xpkg itself runs. The
// help does not show it.
type RuntimeInitCmd struct{}

// Run executes the program of a package, or supervises it.
func (*RuntimeInitCmd) Run(*terminal.Env) error {
	if err := sandbox.Init(); err != nil {
		return sandbox.ErrProgramStart.New(err, "cannot start a program")
	}
	return nil
}
