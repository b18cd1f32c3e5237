package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// startLimit bounds the step in between, which takes some 50 ms.
	startLimit = 30 * time.Second
	// drainLimit is how long the output of a program is read after its end, and
	// guardLimit how long a guard has to end what it guards.
	drainLimit = time.Second
	guardLimit = 5 * time.Second
)

// launcher starts child processes. The kernel ends a child when the thread that
// started it ends, so all of them are started from one that stays.
type launcher struct {
	executable string
	arguments  []string
	requests   chan func()
	done       chan struct{}
}

func newLauncher(o Options) *launcher {
	l := &launcher{executable: o.Executable, arguments: o.Arguments, requests: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread()
		for request := range l.requests {
			request()
		}
	}()
	return l
}

// close ends the thread, and what was started from it and still runs.
func (l *launcher) close() {
	close(l.requests)
	<-l.done
}

// do runs a function on the thread that stays.
func (l *launcher) do(f func() error) error {
	result := make(chan error)
	l.requests <- func() { result <- f() }
	return <-result
}

// child is the step in between, and later the program that it became.
type child struct {
	cmd     *exec.Cmd
	control *os.File
	reports *json.Decoder
	report  *os.File
	// copied is closed when all of the output has arrived.
	copied chan struct{}
	output *os.File
}

// launch starts the step in between. Errors of the machine that forbids it are among
// those that are returned.
func (l *launcher) launch(s setup, attr *syscall.SysProcAttr, log io.Writer) (*child, error) {
	var pipes [6]*os.File
	for i := 0; i < len(pipes); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(pipes[:]...))
		}
		pipes[i], pipes[i+1] = r, w
	}
	output, outputEnd, controlEnd, control, reports, reportEnd := pipes[0], pipes[1], pipes[2], pipes[3], pipes[4], pipes[5]
	cmd := &exec.Cmd{
		Path: l.executable, Args: append([]string{l.executable}, l.arguments...), Dir: "/",
		// The step in between is not the program, and gets nothing of our environment.
		Env:    []string{"GOTRACEBACK=single"},
		Stdout: outputEnd, Stderr: outputEnd, ExtraFiles: []*os.File{controlEnd, reportEnd}, SysProcAttr: attr,
	}
	err := l.do(cmd.Start)
	err = errors.Join(err, closeAll(outputEnd, controlEnd, reportEnd))
	if err != nil {
		return nil, errors.Join(err, closeAll(output, control, reports))
	}
	c := &child{cmd: cmd, control: control, report: reports, reports: json.NewDecoder(reports), output: output, copied: make(chan struct{})}
	go func() {
		defer close(c.copied)
		_, _ = io.Copy(log, output) // An end is an end, however it comes.
	}()
	return c, c.send(s)
}

// send gives the step its setup. A step that has ended already says why in its
// report.
func (c *child) send(s setup) error {
	if err := c.control.SetWriteDeadline(time.Now().Add(startLimit)); err != nil {
		return err
	}
	return ignore(send(c.control, s), syscall.EPIPE)
}

// await waits until the program has taken over, or the step says why it does not.
// With a guard that is its first report; without one the report ends when the
// program takes over.
func (c *child) await(ctx context.Context, guarded bool) (report, error) {
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
		if last = r; guarded && r.Ready {
			return last, c.report.SetReadDeadline(time.Time{})
		}
	}
}

// errEndedEarly is the failure of a step that said nothing; its log may.
var errEndedEarly = errors.New("it ended before the program was started")

// stageError is what failed on the way to a program.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return "cannot " + e.stage + ": " + e.err.Error() }

func (e *stageError) Unwrap() error { return e.err }

// wait waits for the end of the child and of its output.
func (c *child) wait() (*os.ProcessState, error) {
	// How it ended is in the state, and an error of waiting is not expected.
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

// abandon ends a child that did not become a program. A guard ends what it may have
// started, and itself.
func (c *child) abandon(guarded bool) {
	_ = c.control.Close()
	limit := time.Duration(0)
	if guarded {
		limit = guardLimit
	}
	timer := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	_, _ = c.wait()
	timer.Stop()
	_ = closeAll(c.report, c.output)
}
