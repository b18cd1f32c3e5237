package up

import (
	"os"
	"os/exec"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS of the Windows API: no console.
const detachedProcess = 0x00000008

// ownSession detaches the process from the console, so that it keeps running when the console is
// closed.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}

// terminate kills a process, because Windows cannot request a process without a console to stop.
// Its child, which has all persistent state, then stops in order.
func terminate(process *os.Process) error { return process.Kill() }
