package child

import (
	"os/exec"
	"syscall"
)

// detachFromTerminal prevents the child from receiving Ctrl-C. The parent receives it, ends its own
// work first, and then stops the child.
func detachFromTerminal(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
