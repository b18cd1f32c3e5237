package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// Status is the status of a runtime.
type Status struct {
	// Running reports whether the runtime is running, Since when, and PID its host PID.
	Running bool
	Since   time.Time
	PID     int
	// Restarts is the number of restarts.
	Restarts int
	// LastExit is how it ended last; nil when it never did.
	LastExit *Exit
	// NextStart is when it is started again; zero while it runs.
	NextStart time.Time
	// Isolation is "namespaces", or a weaker isolation with the reason, as in "none:
	// REASON". It is empty before the first start.
	Isolation string
}

// Exit describes how a runtime exited.
type Exit struct {
	Time time.Time
	// Code is the exit code; -1 when it has none.
	Code int
	// Signal is the signal that ended the runtime, for example "killed", or empty.
	Signal string
	// Reason is a sentence for users: why the runtime exited or could not be started.
	Reason string
}

// exitOf reads how a process ended.
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
