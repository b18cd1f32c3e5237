package sandbox

import (
	"fmt"
	"syscall"
	"time"
)

func signalOf(n int) syscall.Signal { return syscall.Signal(n) }

func supported() error { return nil }

// instance is a started runtime.
type instance struct {
	child *child
	// pid is the host PID of the runtime.
	pid        int
	isolation  string
	withReaper bool
	// inMemory are the paths of its file systems in memory.
	inMemory []string
	// gone is closed when the runtime and all of its descendants have exited. Exit is valid then.
	gone chan struct{}
	exit Exit
}

func newInstance(c *child, first report, isolation string, withReaper bool) *instance {
	i := &instance{
		child: c, pid: c.cmd.Process.Pid, isolation: isolation, withReaper: withReaper, gone: make(chan struct{}),
	}
	if withReaper {
		i.pid = first.PID
	}
	go i.reap()
	return i
}

func (i *instance) reap() {
	defer close(i.gone)
	defer func() { _ = closeAll(i.child.control, i.child.report, i.child.output, i.child.ports) }()
	if !i.withReaper {
		state, err := i.child.wait()
		if i.exit = exitOf(state); err != nil {
			i.exit.Reason = "its exit status is unknown: " + err.Error()
		}
		return
	}
	var last report
	for {
		var r report
		if i.child.reports.Decode(&r) != nil {
			break
		}
		last = r
	}
	state, _ := i.child.wait()
	if i.exit = exitOf(state); last.Ended != nil {
		i.exit = last.Ended.exit()
	}
}

// terminate sends SIGTERM to the runtime. A reaper forwards it.
func (i *instance) terminate() {
	// It is not an error if the process has already exited.
	_ = i.child.cmd.Process.Signal(syscall.SIGTERM)
}

// kill kills the runtime and its descendants. In a process namespace, the exit of the
// first process ends all others.
func (i *instance) kill() {
	if !i.withReaper {
		_ = i.child.cmd.Process.Kill()
		return
	}
	// The reaper exits when its control file is closed, after all descendants.
	_ = i.child.control.Close()
	time.AfterFunc(reaperLimit, func() { _ = i.child.cmd.Process.Kill() })
}

// excess returns the reason to end a runtime that exceeds a limit, or an empty string.
func (i *instance) excess(s Spec) string {
	pid := i.child.cmd.Process.Pid
	used := usageOf(pid, !i.withReaper)
	if len(i.inMemory) > 0 {
		used.shared = sizeOfFiles(pid, i.inMemory)
	}
	memory, files := used.memory+used.shared, ""
	switch {
	case memory > s.memory():
		if used.shared > 0 {
			files = fmt.Sprintf(", %d MiB of them for files that it has written,", used.shared>>20)
		}
		return fmt.Sprintf(
			"it was ended because it used %d MiB of memory%s and may use %d MiB", memory>>20, files, s.memory()>>20,
		)
	case used.files > maxOpenFiles:
		return fmt.Sprintf("it was ended because it had %d open files and may have %d", used.files, maxOpenFiles)
	case used.watches > maxWatches:
		return fmt.Sprintf(
			"it was ended because its epoll instances could watch %d files and may watch %d", used.watches, maxWatches,
		)
	case used.threads > s.processes():
		return fmt.Sprintf(
			"it was ended because it had %d processes and threads, at most %d are allowed", used.threads, s.processes(),
		)
	}
	return ""
}
