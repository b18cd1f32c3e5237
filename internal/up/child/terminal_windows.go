package child

import (
	"os/exec"
	"syscall"
)

// detachFromTerminal keeps Ctrl-C from the child: the parent gets it, ends its own
// work first, and then stops the child.
func detachFromTerminal(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
