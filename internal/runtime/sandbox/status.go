package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// Status is the status of a runtime.
type Status struct {
	// Running reports whether the runtime is running. Since is the time of its start, and PID its
	// host PID.
	Running bool
	Since   time.Time
	PID     int
	// Restarts is the number of restarts.
	Restarts int
	// LastExit is the last exit of the runtime, or nil if it has never exited.
	LastExit *Exit
	// NextStart is the time of the next start. It is zero while the runtime is running.
	NextStart time.Time
	// Isolation is "namespaces", or a weaker isolation with the reason, as in "none:
	// REASON". It is empty before the first start.
	Isolation string
}

// Exit describes how a runtime exited.
type Exit struct {
	Time time.Time
	// Code is the exit code, or -1 if there is none.
	Code int
	// Signal is the signal that ended the runtime, for example "killed", or empty.
	Signal string
	// Reason describes for users why the runtime exited or could not be started.
	Reason string
}

// exitOf returns the exit of a process.
func exitOf(state *os.ProcessState) Exit {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok {
		return exitCode(state.ExitCode())
	}
	if status.Signaled() {
		return exitSignal(status.Signal())
	}
	return exitCode(status.ExitStatus())
}

func exitCode(code int) Exit {
	return Exit{Code: code, Reason: fmt.Sprintf("it ended with exit code %d", code)}
}

func exitSignal(s syscall.Signal) Exit {
	return Exit{Code: -1, Signal: s.String(), Reason: fmt.Sprintf("it was ended by the signal %q", s)}
}
