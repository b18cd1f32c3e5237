package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startLimit is the maximum time between the start of init and the execution of the runtime,
	// which usually takes about 50 ms.
	startLimit = 30 * time.Second
	// drainLimit is the time for which the output of a runtime is read after its exit, and
	// reaperLimit the maximum time in which a reaper ends all descendants.
	drainLimit  = time.Second
	reaperLimit = 5 * time.Second
	// startAttempts is the maximum number of copies of the program for one start. Another attempt
	// is only needed if a runtime that was started in the meantime has opened the new copy for
	// writing.
	startAttempts = 3
)

// initThread starts child processes. The kernel kills a child when the thread that started it
// exits, so all children are started from one thread that never exits.
type initThread struct {
	program   *initProgram
	arguments []string
	requests  chan func()
	done      chan struct{}
}

func newInitThread(o Options) *initThread {
	l := &initThread{
		program: newInitProgram(o), arguments: o.Arguments, requests: make(chan func()), done: make(chan struct{}),
	}
	go func() {
		defer close(l.done)
		runtime.LockOSThread()
		for request := range l.requests {
			request()
		}
	}()
	return l
}

// close ends the thread, and thereby kills the processes that were started from it.
func (l *initThread) close() {
	close(l.requests)
	<-l.done
	_ = l.program.discard() // The copy in memory cannot have unwritten data.
}

// do runs a function on the thread.
func (l *initThread) do(f func() error) error {
	result := make(chan error)
	l.requests <- func() { result <- f() }
	return <-result
}

// child is an init process, and later the runtime that it executes.
type child struct {
	cmd     *exec.Cmd
	control *os.File
	reports *json.Decoder
	report  *os.File
	// ports is the socket on which init sends the descriptor of its filter.
	ports *os.File
	// copied is closed when all of the output has arrived.
	copied chan struct{}
	output *os.File
}

// exec starts an init process, and sends it the sandbox spec. It fails if the machine forbids the
// isolation. If it fails after the start, it returns the child with the error.
func (l *initThread) exec(s sandboxSpec, attr *syscall.SysProcAttr, log io.Writer) (*child, error) {
	var pipes [6]*os.File
	for i := 0; i < len(pipes); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(pipes[:]...))
		}
		pipes[i], pipes[i+1] = r, w
	}
	output, outputEnd, controlEnd, control, reports, reportEnd := pipes[0], pipes[1], pipes[2], pipes[3], pipes[4],
		pipes[5]
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, closeAll(pipes[:]...))
	}
	ports, portsEnd := os.NewFile(uintptr(ends[0]), "ports"), os.NewFile(uintptr(ends[1]), "ports")
	cmd, err := l.start(outputEnd, []*os.File{controlEnd, reportEnd}, portsEnd, attr)
	err = errors.Join(err, closeAll(outputEnd, controlEnd, reportEnd, portsEnd))
	if err != nil {
		return nil, errors.Join(err, closeAll(output, control, reports, ports))
	}
	c := &child{
		cmd: cmd, control: control, report: reports, reports: json.NewDecoder(reports), ports: ports, output: output,
		copied: make(chan struct{}),
	}
	go func() {
		defer close(c.copied)
		_, _ = io.Copy(log, output) // Every error ends the output.
	}()
	return c, c.send(s)
}

// start executes init with an output, pipes and a socket. It makes a new copy of the program if a
// runtime has opened the copy for writing.
func (l *initThread) start(
	output *os.File, pipes []*os.File, ports *os.File, attr *syscall.SysProcAttr,
) (*exec.Cmd, error) {
	var err error
	for range startAttempts {
		var program *os.File
		if program, err = l.program.open(); err != nil {
			return nil, err
		}
		cmd := &exec.Cmd{
			Path: fmt.Sprintf("/proc/self/fd/%d", programFile), Args: append([]string{"xpkg"}, l.arguments...), Dir: "/",
			// Init does not inherit the environment of this process.
			Env:    []string{"GOTRACEBACK=single"},
			Stdout: output, Stderr: output, ExtraFiles: append(slices.Clone(pipes), program, ports), SysProcAttr: attr,
		}
		err = errors.Join(l.do(cmd.Start), program.Close())
		if !errors.Is(err, syscall.ETXTBSY) {
			return cmd, err
		}
		err = errors.Join(err, l.program.discard())
	}
	return nil, err
}

// send writes the sandbox spec to init. If init has already exited, its report contains
// the reason.
func (c *child) send(s sandboxSpec) error {
	if err := c.control.SetWriteDeadline(time.Now().Add(startLimit)); err != nil {
		return err
	}
	return ignore(send(c.control, s), syscall.EPIPE)
}

// await waits until init has executed the runtime, or reports a failure. A reaper sends a
// report. Without a reaper, the report pipe is closed when the runtime is executed.
func (c *child) await(ctx context.Context, withReaper bool) (report, error) {
	if err := c.report.SetReadDeadline(time.Now().Add(startLimit)); err != nil {
		return report{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.report.SetReadDeadline(time.Unix(1, 0)) })()
	var last report
	for {
		var r report
		err := c.reports.Decode(&r)
		switch {
		case errors.Is(err, io.EOF) && last.Ready:
			return last, nil
		case errors.Is(err, io.EOF):
			return last, errEndedEarly
		case err != nil && ctx.Err() != nil:
			return last, context.Cause(ctx)
		case err != nil:
			return last, fmt.Errorf("it does not start within %s: %w", startLimit, err)
		case r.Error != "":
			return r, &stageError{r.Stage, errors.New(r.Error)}
		}
		if last = r; withReaper && r.Ready {
			return last, c.report.SetReadDeadline(time.Time{})
		}
	}
}

// errEndedEarly is the error of an init process that exited without a report. The log of the
// runtime may contain the reason.
var errEndedEarly = errors.New("it ended before the program was started")

// stageError is the failure of a stage of the start of a runtime.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return "cannot " + e.stage + ": " + e.err.Error() }

func (e *stageError) Unwrap() error { return e.err }

// wait waits for the end of the child and of its output.
func (c *child) wait() (*os.ProcessState, error) {
	// The process state contains the exit status, so an exit error is not an error here.
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	timer := time.AfterFunc(drainLimit, func() { _ = c.output.SetReadDeadline(time.Unix(1, 0)) })
	<-c.copied
	timer.Stop()
	return c.cmd.ProcessState, err
}

// terminate ends an init process that did not execute its runtime. A reaper ends the
// processes that it started, and then exits.
func (c *child) terminate(withReaper bool) {
	_ = c.control.Close()
	limit := time.Duration(0)
	if withReaper {
		limit = reaperLimit
	}
	timer := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	_, _ = c.wait()
	timer.Stop()
	_ = closeAll(c.report, c.output, c.ports)
}
