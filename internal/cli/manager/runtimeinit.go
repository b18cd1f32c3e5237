package manager

import (
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

// RuntimeInitCmd is the step between the control plane of this machine and the
// program of a package. It is run by xpkg itself, under the name
// [process.InitCommand], and is in no help.
type RuntimeInitCmd struct{}

// Run becomes the program, or guards it.
func (*RuntimeInitCmd) Run(*terminal.Env) error {
	if err := sandbox.Init(); err != nil {
		return sandbox.ErrProgramStart.New(err, "cannot start a program")
	}
	return nil
}
