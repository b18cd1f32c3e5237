package program_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/pty"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

// A terminal is a pseudo terminal with a command, and its screen.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	screen screen
	output buffer.Buffer
	done   chan struct{}
}

// startTerminal runs the program in a terminal of a number of columns.
func startTerminal(t *testing.T, columns uint16, p plane, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open(columns)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	term := &terminal{cmd: exec.Command(p.program(), args...), master: master, done: make(chan struct{})}
	term.screen.columns = int(columns)
	term.cmd.Env = append(append([]string{}, p.env...), "KUBECONFIG="+p.Kubeconfig, "TERM=xterm")
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, master.Close()))
	}
	go func() {
		defer close(term.done)
		// The read fails when the last process has closed its end.
		_, _ = io.Copy(&term.output, master)
	}()
	t.Cleanup(func() { _ = master.Close() })
	return term
}

// A closed terminal stops the control plane in it, as Ctrl-C does.
func TestClosedTerminalStopsTheControlPlane(t *testing.T) {
	// A test that nohup started would pass the ignored signal on.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	w := newWorkshop(t)
	dir := w.newData(t, "terminal")
	term := startTerminal(t, 120, plane{workshop: w}, upArgs(dir)...)
	var state up.State
	until(t, "xpkg up is ready", func(context.Context) (string, bool) {
		report, err := up.Status(dir)
		state = report.State
		return fmt.Sprintf("%v %s", err, term.output.String()), err == nil && report.Ready
	})
	if err := term.master.Close(); err != nil {
		t.Fatal(err)
	}
	code, _ := term.wait(t)
	if _, err := os.Stat(filepath.Join(dir, datadir.StateName)); code != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("exit code %d (%s), and the state: %v", code, term.cmd.ProcessState, err)
	}
	if err := syscall.Kill(state.ControlPlanePID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the API server still runs: %v", err)
	}
}

// The help of a command fits a narrow terminal: only a single word can be wider than its column.
func TestHelpFitsTheTerminal(t *testing.T) {
	const columns = 60
	term := startTerminal(t, columns, shared(t), "tree", "--help")
	if code, _ := term.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	_, flags, found := strings.Cut(term.output.String(), "Flags:")
	if !found {
		t.Fatalf("the help is\n%s", term.output.String())
	}
	for line := range strings.Lines(flags) {
		line = strings.TrimRight(line, "\r\n")
		text := line[strings.LastIndex(line, "  ")+1:]
		if len(line) > columns && strings.Contains(strings.TrimSpace(text), " ") {
			t.Errorf("the line has %d characters: %s", len(line), line)
		}
	}
}

// wait waits for the end of the command, and returns its exit code and the lines on the screen.
func (term *terminal) wait(t *testing.T) (code int, lines []string) {
	t.Helper()
	timer := time.AfterFunc(limit, func() { _ = term.cmd.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	if err := term.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	<-term.done
	if err := term.screen.show(term.output.String()); err != nil {
		t.Errorf("%v in %q", err, term.output.String())
	}
	return term.cmd.ProcessState.ExitCode(), term.screen.lines()
}

// A screen is the visible content of a terminal, with the control sequences that xpkg uses.
type screen struct {
	columns int
	rows    [][]rune
	// moving are all texts that the moving line ever showed.
	moving []string
}

// colors are the control sequences that change the color of text. They do not change its place.
var colors = strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "")

// show adds an output to the screen. It fails for unknown control sequences, and for a progress
// line that does not fit in its row or that other text overwrites.
func (s *screen) show(output string) error {
	const clear = "\r\x1b[K"
	s.rows = append(s.rows, nil)
	for _, part := range strings.SplitAfter(strings.ReplaceAll(colors.Replace(output), "\r\n", "\n"), "\n") {
		// A row is redrawn from its start, or it ends.
		for i, drawn := range strings.Split(part, clear) {
			if i > 0 {
				s.rows[len(s.rows)-1] = nil
			}
			if err := s.draw(drawn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *screen) draw(text string) error {
	line, ended := strings.CutSuffix(text, "\n")
	if strings.ContainsAny(line, "\r\x1b\b") {
		return fmt.Errorf("unexpected control characters in %q", line)
	}
	row := append(s.rows[len(s.rows)-1], []rune(line)...)
	s.rows[len(s.rows)-1] = row
	if isMoving(line) {
		if ended || len(row) != len([]rune(line)) {
			return fmt.Errorf("a torn line: %q", string(row))
		}
		if len(row) >= s.columns {
			return fmt.Errorf("a line of %d characters moves in %d columns: %q", len(row), s.columns, line)
		}
		s.moving = append(s.moving, line)
	}
	if ended {
		s.rows = append(s.rows, nil)
	}
	return nil
}

// isMoving reports whether a line is the progress line, which starts with a spinner.
func isMoving(line string) bool {
	r := []rune(line)
	return len(r) > 0 && r[0] >= 0x2800 && r[0] <= 0x28ff
}

// lines returns the lines that stay.
func (s *screen) lines() []string {
	var out []string
	for _, row := range s.rows {
		out = append(out, string(row))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
