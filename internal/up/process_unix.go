//go:build unix

package up

import (
	"os/exec"
	"syscall"
)

// ownSession takes the process away from the terminal, so that it stays when the
// terminal is closed.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
