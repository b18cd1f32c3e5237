//go:build unix

package up

import (
	"os"
	"os/exec"
	"syscall"
)

// ownSession takes the process away from the terminal, so that it stays when the
// terminal is closed.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks a process to stop.
func terminate(process *os.Process) error { return process.Signal(syscall.SIGTERM) }
