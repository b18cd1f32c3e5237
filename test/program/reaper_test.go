//go:build unix

package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up"
)

// asReaper is the first argument with which this test binary runs as its own
// reaper. The second is the folder of all that the tests make.
const asReaper = "reaper-of-program-tests"

// The reaper stops every control plane that the tests started, however the test
// binary ends: it waits for the end of its input, and a test binary that was killed
// or that timed out closes that too.
var reaper struct {
	cmd   *exec.Cmd
	input io.Closer
	said  bytes.Buffer
}

func startReaper(folder string) error {
	cmd := exec.Command(os.Args[0], asReaper, folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = &reaper.said
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	reaper.cmd, reaper.input = cmd, input
	return cmd.Start()
}

// finish lets the reaper do its work. It fails when something had to be killed.
func finish() error {
	if reaper.cmd == nil {
		return nil
	}
	if err := errors.Join(reaper.input.Close(), reaper.cmd.Wait()); err != nil {
		return fmt.Errorf("stop what the tests started: %w\n%s", err, reaper.said.String())
	}
	return nil
}

// The reaper identifies the files in its folder by these names.
const (
	// planePrefix starts the name of a data directory.
	planePrefix = "plane-"
	// homePrefix starts the name of a user's folder for data, in which the default
	// data directory can be.
	homePrefix = "home-"
	// notePrefix starts the name of a file that records a process.
	notePrefix = "process-"
)

// note records a process that the reaper must kill if the test binary cannot. The file is removed
// when the process has ended.
func (w workshop) note(pid int) (file string, err error) {
	file = filepath.Join(w.dir, notePrefix+strconv.Itoa(pid))
	return file, os.WriteFile(file, nil, 0o600)
}

// reap waits for the end of the input, stops the control planes in the folder, kills
// the processes that are noted there, and removes it.
func reap(input io.Reader, folder string) int {
	// The test binary, which reads this output, may have ended.
	signal.Ignore(syscall.SIGPIPE)
	_, err := io.Copy(io.Discard, input)
	for _, pattern := range []string{
		planePrefix + "*", filepath.Join(homePrefix+"*", "xpkg", "default"),
		filepath.Join(homePrefix+"*", ".local", "share", "xpkg", "default"),
	} {
		dirs, globErr := filepath.Glob(filepath.Join(folder, pattern))
		err = errors.Join(err, globErr)
		for _, dir := range dirs {
			err = errors.Join(err, stop(filepath.Join(folder, "xpkg"), dir))
		}
	}
	notes, globErr := filepath.Glob(filepath.Join(folder, notePrefix+"*"))
	err = errors.Join(err, globErr)
	for _, note := range notes {
		pid, parseErr := strconv.Atoi(strings.TrimPrefix(filepath.Base(note), notePrefix))
		if parseErr == nil && pid > 1 {
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	if err = errors.Join(err, os.RemoveAll(folder)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// stop stops a control plane as a user does, and kills it by the ids of its
// processes when that fails.
func stop(program, dir string) error {
	report, err := up.Status(dir)
	if err != nil || !report.Running {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "down", "--data-dir", dir).CombinedOutput()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("xpkg down: %w: %s", err, out)
	for _, pid := range []int{report.PID, report.State.ControlPlanePID} {
		if pid > 1 {
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	return err
}
