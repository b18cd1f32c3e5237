package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

const (
	upLog = "up.log"
	// reportVariable names the file in which a process in the background writes the error
	// of its start.
	reportVariable = "XPKG_UP_REPORT"
	reportName     = "up.report"
	// statePoll is the pause between two checks of a process in the background.
	statePoll = 50 * time.Millisecond
)

// Detach starts this program again in a session of its own, so that it outlives this process. With
// the arguments, the program must call Run with the same data directory. Detach returns when the
// control plane is ready, or returns the error of its start. The output of the process is in
// logs/up.log. If the context ends first, Detach terminates the process.
func Detach(ctx context.Context, dataDir string, args []string) (State, error) {
	dir, err := datadir.Open(dataDir, time.Now())
	if err != nil {
		return State{}, err
	}
	path, folder := dir.Path, dir.Logs()
	if err := dir.Close(); err != nil {
		return State{}, ErrDataDirUnusable.New(err, "cannot pass data directory %s to the background process", path)
	}
	log, err := openLog(folder, upLog)
	if err != nil {
		return State{}, err
	}
	defer log.Close()
	background, err := startBackground(log, filepath.Join(folder, reportName), args)
	if err != nil {
		return State{}, err
	}
	defer func() { _ = datadir.RemoveFile(background.report) }()
	return background.await(ctx, path)
}

// background is a process that outlives this one.
type background struct {
	process *os.Process
	ended   chan struct{}
	err     error // to be read after ended is closed
	report  string
	log     *logFile
}

func startBackground(log *logFile, report string, args []string) (*background, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, ErrNotReady.New(err, "cannot find the xpkg executable")
	}
	if err := datadir.RemoveFile(report); err != nil {
		return nil, ErrDataDirUnusable.New(err, "cannot remove an old report")
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), reportVariable+"="+report)
	cmd.Stdout, cmd.Stderr = log.File, log.File
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		return nil, ErrNotReady.New(err, "cannot start a process in the background")
	}
	b := &background{process: cmd.Process, ended: make(chan struct{}), report: report, log: log}
	go func() {
		defer close(b.ended)
		b.err = cmd.Wait()
	}()
	return b, nil
}

// await waits for the state that the process writes when it is ready. If the context ends first, it
// terminates the process.
func (b *background) await(ctx context.Context, dir string) (State, error) {
	tick := time.NewTicker(statePoll)
	defer tick.Stop()
	for {
		if state, err := readState(dir); err == nil && state.PID == b.process.Pid {
			return state, nil
		}
		select {
		case <-b.ended:
			return State{}, b.failure()
		case <-ctx.Done():
			err := terminate(b.process)
			if errors.Is(err, os.ErrProcessDone) {
				err = nil
			}
			<-b.ended
			return State{}, errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// failure returns the error that the process reported, or an error with the end of its output.
func (b *background) failure() error {
	if f := readReport(b.report); f != nil {
		return f
	}
	err := b.err
	if err == nil {
		err = errors.New("it ended without an error")
	}
	if output := b.log.lastLines(); output != "" {
		err = fmt.Errorf("%w; its output:\n%s", err, output)
	}
	return ErrNotReady.New(err, "the control plane did not start in the background")
}

// report is the content of the file that reportVariable names.
type report struct {
	Code  string `json:"code"`
	Class string `json:"class"`
	What  string `json:"what"`
	Do    string `json:"do"`
}

// writeReport writes the error of the start for Detach, if Detach started this process.
func writeReport(err error) error {
	path := os.Getenv(reportVariable)
	if path == "" {
		return nil
	}
	f := errcode.From(err)
	return datadir.WriteJSON(path, report{Code: f.Code.Name, Class: f.Code.Class.Name, What: f.Error(), Do: f.Do})
}

// readReport returns the error in a report, or nil if there is no readable report.
func readReport(path string) *errcode.Error {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var r report
	if err := json.Unmarshal(content, &r); err != nil {
		return nil
	}
	code := errcode.Code{Name: r.Code, Class: errcode.ClassNamed(r.Class)}
	return code.New(nil, "%s", r.What).WithDo("%s", r.Do)
}
