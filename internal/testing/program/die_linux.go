package program

import (
	"os/exec"
	"syscall"
)

// dieWithTest lets the process end also when the test binary is killed.
func dieWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
