package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxOpenFiles limits the open files of each process of a runtime, and of all its processes
// together. The kernel buffers up to 208 KiB in an open socket, which does not count as memory of a
// process.
const maxOpenFiles = 8192

// maxWatches limits the files that the epoll instances of a runtime could watch. Most processes
// have one instance. The kernel has a limit for each user; once it is reached, no process of the
// user can accept connections.
const maxWatches = 100_000

// rlimits are the limits of each process of a runtime (getrlimit(2)). Most of them are counted for
// each user, and the runtimes of a supervisor without root privileges run as its user. Without
// these limits, a runtime could exhaust the resources of that user.
var rlimits = []struct {
	resource int
	max      uint64
}{
	// The memory of a crashed process contains secrets.
	{unix.RLIMIT_CORE, 0},
	// The table of open files of the machine.
	{unix.RLIMIT_NOFILE, maxOpenFiles},
	// Pages that are sent without copying stay in memory after the process unmaps them, and count
	// as locked memory of the user.
	{unix.RLIMIT_MEMLOCK, 64 << 10},
	// POSIX message queues are memory of the kernel that outlives the process.
	{unix.RLIMIT_MSGQUEUE, 0},
	// Queued signals and timers of the user. A profiler has a timer for each thread.
	{unix.RLIMIT_SIGPENDING, defaultProcesses},
	// A process with real-time priority keeps the API server from running.
	{unix.RLIMIT_RTPRIO, 0},
	{unix.RLIMIT_NICE, 0},
}

// niceness is the priority of runtimes (nice(2)), which is lower than that of the control plane:
// the API server runs first if the processes of a runtime use all processors. The weight of a
// process at 5 is a third of the default.
const niceness = 5

// namespaceLimits are the limits of the user namespace of a runtime, which are files in userLimits
// (namespaces(7)). The resources of a runtime also count for the user of the supervisor, who has
// 128 instances of inotify by default.
var namespaceLimits = []struct {
	name string
	max  int
}{
	// A program watches its certificates with one instance, and a few files.
	{"max_inotify_instances", 16},
	{"max_inotify_watches", 4096},
	// Runtimes need neither fanotify nor namespaces, which the filter of system calls
	// denies too.
	{"max_fanotify_groups", 0},
	{"max_fanotify_marks", 0},
	{"max_user_namespaces", 0},
	{"max_mnt_namespaces", 0},
	{"max_pid_namespaces", 0},
	{"max_net_namespaces", 0},
	{"max_ipc_namespaces", 0},
	{"max_uts_namespaces", 0},
	{"max_cgroup_namespaces", 0},
	{"max_time_namespaces", 0},
}

const userLimits = "/proc/sys/user"

// limit sets the limits that the kernel enforces.
func (s sandboxSpec) limit() error {
	for _, l := range rlimits {
		if err := lower(l.resource, l.max); err != nil {
			return stage("limit the program", err)
		}
	}
	if err := lowerPriority(); err != nil {
		return stage("lower the priority of the program", err)
	}
	if s.Processes > 0 {
		return stage("limit the program", lower(unix.RLIMIT_NPROC, uint64(s.Processes)))
	}
	return nil
}

// lower sets a resource limit, unless the current limit is lower.
func lower(resource int, limit uint64) error {
	var present unix.Rlimit
	if err := unix.Getrlimit(resource, &present); err != nil {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(present.Cur, limit), Max: min(present.Max, limit)})
}

// lowerPriority lowers the priority of this process to niceness, unless it is lower.
func lowerPriority() error {
	// The system call returns 20 minus the nice value, which is never negative.
	present, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || 20-present >= niceness {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
}

// limitNamespace sets the limits of this user namespace. It is not an error if the kernel
// lacks one, or if the machine forbids to set it, as containers with a read-only /proc/sys.
func (s sandboxSpec) limitNamespace() error {
	for _, l := range namespaceLimits {
		err := os.WriteFile(filepath.Join(userLimits, l.name), []byte(strconv.Itoa(l.max)), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
			return stage("limit the namespace", err)
		}
	}
	return nil
}
