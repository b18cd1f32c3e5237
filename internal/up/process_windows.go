package up

import (
	"os"
	"os/exec"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS of the Windows API: no console.
const detachedProcess = 0x00000008

// ownSession takes the process away from the console, so that it stays when the
// console is closed.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}

// terminate ends a process. Windows cannot ask a process without a console to stop;
// its child notices the end, stops in order, and has everything that must be kept.
func terminate(process *os.Process) error { return process.Kill() }
