//go:build unix

package child

import (
	"os/exec"
	"syscall"
)

// detachFromTerminal prevents the child from receiving Ctrl-C. The parent receives it, ends its own
// work first, and then stops the child.
func detachFromTerminal(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
