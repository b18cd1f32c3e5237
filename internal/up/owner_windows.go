package up

import "os"

// ownerName is not used on Windows.
const ownerName = "up.owner"

// lockOwner does nothing: Windows does not report the process of a lock.
func lockOwner(string) (release func() error, err error) { return func() error { return nil }, nil }

// ownerPID returns the recorded process id.
func ownerPID(path string) (int, error) { return holderPID(path), nil }

// terminate ends a process. Windows cannot ask a process without a console to stop;
// its child notices the end, stops in order, and has everything that must be kept.
func terminate(process *os.Process) error { return process.Kill() }
