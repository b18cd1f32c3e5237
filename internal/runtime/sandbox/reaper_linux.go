package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runReaper runs a runtime without its own process namespace. It kills all descendants when the
// runtime exits, and kills the runtime too when the supervisor exits for any reason or closes the
// control file. It forwards SIGTERM to the runtime.
func runReaper(s sandboxSpec, control, reports *os.File) error {
	// Orphaned descendants of the runtime become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return send(reports, report{Stage: "guard the program", Error: err.Error()})
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	orphaned := make(chan struct{})
	go func() {
		defer close(orphaned)
		_, _ = io.Copy(io.Discard, control)
	}()
	pid, closeProgram, err := startReaped(*s.Reaped)
	defer closeProgram()
	if err != nil {
		endAll()
		var failed *stageError
		if !errors.As(err, &failed) {
			failed = &stageError{"start it", err}
		}
		return send(reports, report{Stage: failed.stage, Error: failed.err.Error()})
	}
	if err := send(reports, report{Ready: true, PID: pid}); err != nil {
		endAll()
		return err
	}
	over := make(chan ended, 1)
	go func() { over <- reap(pid) }()
	for {
		select {
		case <-signals:
			_ = syscall.Kill(pid, syscall.SIGTERM)
		case <-orphaned:
			orphaned = nil
			// The goroutine above observes the exit of the runtime.
			killAll()
		case end := <-over:
			endAll()
			return send(reports, report{Ended: &end})
		}
	}
}

// startReaped starts another init process, and waits until it has executed the runtime.
func startReaped(s sandboxSpec) (pid int, done func(), err error) {
	controlEnd, control, err := os.Pipe()
	if err != nil {
		return 0, func() {}, err
	}
	reports, reportEnd, err := os.Pipe()
	if err != nil {
		return 0, func() {}, errors.Join(err, closeAll(controlEnd, control))
	}
	// The control file stays open for the lifetime of this process.
	done = func() { _ = closeAll(control, reports) }
	p, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Dir: "/", Env: os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, controlEnd, reportEnd},
		// This thread is locked, and stays as long as the process does.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	err = errors.Join(err, closeAll(controlEnd, reportEnd))
	if err != nil {
		return 0, done, err
	}
	if err := send(control, s); err != nil {
		return 0, done, err
	}
	decoder := json.NewDecoder(reports)
	var last report
	for {
		var r report
		err := decoder.Decode(&r)
		switch {
		case errors.Is(err, io.EOF) && last.Ready:
			return p.Pid, done, nil
		case err != nil:
			return 0, done, fmt.Errorf("%w: %w", errEndedEarly, err)
		case r.Error != "":
			return 0, done, &stageError{r.Stage, errors.New(r.Error)}
		}
		last = r
	}
}

// reap waits until the runtime has exited, and reaps orphans that exit before it.
func reap(program int) ended {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return ended{Code: -1}
		case pid == program && status.Signaled():
			return ended{Code: -1, Signal: int(status.Signal())}
		case pid == program:
			return ended{Code: status.ExitStatus()}
		}
	}
}

// killAll kills the children of this process, which include the orphaned descendants of the
// runtime.
func killAll() {
	for _, child := range childrenOf(os.Getpid()) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
}

// endAll kills descendants until none is left. The children of a killed process become
// children of this process.
func endAll() {
	for {
		killAll()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
		if pid == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
