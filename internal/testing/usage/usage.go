// Package usage measures the resources that a process has used: the test itself, or a process
// that it started. It reads /proc, so it works on Linux only; on other systems every function
// returns [errors.ErrUnsupported].
package usage

import "time"

// Usage is the resource usage of a process since its start.
type Usage struct {
	// CPU is the time of all processors together, in user space and in the
	// kernel. The kernel counts it in steps of 10 ms.
	CPU time.Duration
	// Resident is the memory that the process holds now, in bytes.
	Resident int64
	// Peak is the most that it held at once, in bytes, since its start or since
	// the last ResetPeak.
	Peak int64
}

// Of returns the usage of a process.
func Of(pid int) (Usage, error) { return of(pid) }

// ResetPeak resets Peak to the current value of Resident.
func ResetPeak(pid int) error { return resetPeak(pid) }

// Machine returns the processor time that all processes of the machine have used since boot.
func Machine() (time.Duration, error) { return machine() }
