// Package usage tells tests and benchmarks what a process has used: its own, or
// one that the test started. It reads /proc, and so works on Linux only;
// elsewhere every function fails with errors.ErrUnsupported.
package usage

import "time"

// Usage is what a process has used from its start until now.
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

// Of gives the usage of the process with the pid.
func Of(pid int) (Usage, error) { return of(pid) }

// ResetPeak makes Peak start anew from what the process holds now.
func ResetPeak(pid int) error { return resetPeak(pid) }

// Machine gives the time that all processors of the machine together have worked
// since it was started, for whatever process.
func Machine() (time.Duration, error) { return machine() }
