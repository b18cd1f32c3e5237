//go:build unix

package up

import (
	"os"
	"os/exec"
	"syscall"
)

// ownSession starts the process in a session of its own, so that it keeps running when the terminal
// is closed.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks a process to stop.
func terminate(process *os.Process) error { return process.Signal(syscall.SIGTERM) }
