package program

import (
	"os/exec"
	"syscall"
)

// dieWithTest makes the kernel kill the process when the test binary is killed.
func dieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
