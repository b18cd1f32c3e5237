package process

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// Status is what is known of a program.
type Status struct {
	// Running says that the program runs now, since when, and as which process of
	// this machine.
	Running bool
	Since   time.Time
	PID     int
	// Restarts counts how often it was started again.
	Restarts int
	// LastExit is how it ended last; nil when it never did.
	LastExit *Exit
	// NextStart is when it is started again; zero while it runs.
	NextStart time.Time
	// Isolation is "namespaces", or says what there is instead and why, as in
	// "none: REASON". It is empty before the first start.
	Isolation string
}

// Exit is how a program ended.
type Exit struct {
	Time time.Time
	// Code is the exit code; -1 when it has none.
	Code int
	// Signal ended the program, for example "killed"; empty when none did.
	Signal string
	// Reason is a sentence for people: why it ended, or could not be started.
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
