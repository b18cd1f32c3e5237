package usage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of the times in /proc/PID/stat. It is the same on every
// architecture that Go supports (proc_pid_stat(5), USER_HZ).
const tick = time.Second / 100

func of(pid int) (Usage, error) {
	stat, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(file(pid, "status"))
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	if u.CPU, err = parseCPU(stat); err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if u.Resident, err = parseKilobytes(status, "VmRSS:"); err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if u.Peak, err = parseKilobytes(status, "VmHWM:"); err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return u, nil
}

// resetPeak writes the number that resets the peak (proc_pid_clear_refs(5)).
func resetPeak(pid int) error {
	return os.WriteFile(file(pid, "clear_refs"), []byte("5"), 0)
}

func machine() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(stat)
}

func thread() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// run is the parent of the processes that outlive their parents while the command runs (PR_SET_CHILD_SUBREAPER,
// prctl(2)).
func run(cmd *exec.Cmd) ([]byte, time.Duration, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, 0, err
	}
	out, err := cmd.CombinedOutput()
	var cpu time.Duration
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	for {
		var used syscall.Rusage
		switch _, ended := syscall.Wait4(-1, nil, 0, &used); {
		case ended == nil:
			cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		case !errors.Is(ended, syscall.EINTR): // No process is left (ECHILD).
			return out, cpu, errors.Join(err, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0))
		}
	}
}

// parseBusy returns the sum of user, nice, system, interrupt and stolen time in the first line
// of /proc/stat, without idle and iowait (proc_stat(5)). User time already includes the time
// of guests.
func parseBusy(stat []byte) (time.Duration, error) {
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("cannot read the times of the machine: %q", line)
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

func file(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// parseCPU returns the sum of utime and stime, the 14th and 15th field. The second field is the
// name of the program in parentheses, which may contain spaces and parentheses.
func parseCPU(stat []byte) (time.Duration, error) {
	const first, utime, stime = 3, 14, 15
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= stime-first {
		return 0, fmt.Errorf("cannot read the times of a stat file: %q", stat)
	}
	user, err := strconv.ParseInt(fields[utime-first], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[stime-first], 10, 64)
	return time.Duration(user+system) * tick, err
}

// parseKilobytes returns the value of one line of a status file, in bytes.
func parseKilobytes(status []byte, key string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("the status file has no %s", strings.TrimSuffix(key, ":"))
}
