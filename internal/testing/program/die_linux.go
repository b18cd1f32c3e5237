package program

import (
	"os/exec"
	"syscall"
)

// DieWithTest makes the kernel kill the process when the test binary is killed.
func DieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
