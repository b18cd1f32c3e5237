// Package usage measures the resources that a process has used: the test itself, or a process
// that it started. It reads /proc, so it works on Linux only; on other systems every function
// returns [errors.ErrUnsupported].
package usage

import (
	"os/exec"
	"time"
)

// Usage is the resource usage of a process since its start.
type Usage struct {
	// CPU is the processor time in user space and in the kernel, on all processors. The kernel
	// counts it in steps of 10 ms.
	CPU time.Duration
	// Resident is the current resident memory, in bytes.
	Resident int64
	// Peak is the maximum resident memory, in bytes, since the start of the process or the last
	// ResetPeak.
	Peak int64
}

// Of returns the usage of a process.
func Of(pid int) (Usage, error) { return of(pid) }

// ResetPeak resets Peak to the current value of Resident.
func ResetPeak(pid int) error { return resetPeak(pid) }

// Machine returns the processor time that all processes of the machine have used since boot.
func Machine() (time.Duration, error) { return machine() }

// Thread returns the processor time of the calling thread. The caller must be locked to its thread.
func Thread() (time.Duration, error) { return thread() }

// Run runs a command until it and the processes that it started have exited. It returns the combined output, and the
// processor time of all of them. No other process of the caller may exit meanwhile.
func Run(cmd *exec.Cmd) ([]byte, time.Duration, error) { return run(cmd) }
