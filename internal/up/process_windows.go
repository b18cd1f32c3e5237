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

// terminate ends a process. Windows has no way to ask one without a console; its
// child notices and stops in order, and that has everything that must be kept.
func terminate(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}
