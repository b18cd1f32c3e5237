package process

import (
	"fmt"
	"syscall"
	"time"
)

func signalOf(n int) syscall.Signal { return syscall.Signal(n) }

func supported() error { return nil }

// instance is a program that was started.
type instance struct {
	child *child
	// pid is the program on this machine, and isolation how it is kept apart.
	pid       int
	isolation string
	guarded   bool
	// gone is closed when the program and all that it started is gone, and exit is
	// how it ended.
	gone chan struct{}
	exit Exit
}

func newInstance(c *child, first report, isolation string, guarded bool) *instance {
	i := &instance{child: c, pid: c.cmd.Process.Pid, isolation: isolation, guarded: guarded, gone: make(chan struct{})}
	if guarded {
		i.pid = first.PID
	}
	go i.reap()
	return i
}

func (i *instance) reap() {
	defer close(i.gone)
	defer func() { _ = closeAll(i.child.control, i.child.report, i.child.output) }()
	if !i.guarded {
		state, err := i.child.wait()
		if i.exit = exitOf(state); err != nil {
			i.exit.Reason = "it cannot be told how it ended: " + err.Error()
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

// terminate asks the program to end. A guard passes it on.
func (i *instance) terminate() {
	// A process that is gone is no failure.
	_ = i.child.cmd.Process.Signal(syscall.SIGTERM)
}

// kill ends the program and all that it started. With a process namespace of its own
// the end of the first process is that of all.
func (i *instance) kill() {
	if !i.guarded {
		_ = i.child.cmd.Process.Kill()
		return
	}
	// The guard ends with its control file, after everybody else.
	_ = i.child.control.Close()
	time.AfterFunc(guardLimit, func() { _ = i.child.cmd.Process.Kill() })
}

// excess says which limit the program exceeds; "" for none.
func (i *instance) excess(s Spec) string {
	used := usageOf(i.child.cmd.Process.Pid, !i.guarded)
	switch {
	case used.memory > s.memory():
		return fmt.Sprintf("it was ended because it used %d MiB of memory and may use %d MiB", used.memory>>20, s.memory()>>20)
	case used.threads > s.processes():
		return fmt.Sprintf("it was ended because it had %d processes and threads and may have %d", used.threads, s.processes())
	}
	return ""
}
