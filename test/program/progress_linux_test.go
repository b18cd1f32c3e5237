package program_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/up"
)

// On a terminal, a command shows its progress in one updated line, and leaves only its result.
//
// hardening: L2
func TestProgressOnTerminal(t *testing.T) {
	p := shared(t)
	const name = "terminal-with-a-name-that-is-long-enough-to-fill-a-line"
	ref := p.publish(t, providerFolder(t, name, "terminal.test", 10), "terminal/provider")
	for _, columns := range []uint16{40, 200} {
		code, lines, moving := p.onTerminal(t, columns, "install", "provider", ref, name, "--yes", "--wait", "2m")
		wantScreen(t, code, 0, lines, "provider/"+name+" healthy ("+ref+")")
		wantMoving(t, moving, "installing provider/terminal-")
		code, lines, moving = p.onTerminal(t, columns, "uninstall", "provider", name, "--yes", "--wait", "1m")
		wantScreen(t, code, 0, lines, "provider/"+name+" gone")
		wantMoving(t, moving, "deleting provider/terminal-")
	}
	code, lines, _ := p.onTerminal(t, 400, "install", "provider", p.Registry+"/terminal/provider:v9", name, "--wait", "1m")
	if code != 5 || len(lines) != 2 {
		t.Errorf("exit code %d, and on the screen:\n%s", code, strings.Join(lines, "\n"))
	}
	if problem := checkRefusal(strings.Join(lines, "\n"), "TagNotFound"); problem != "" {
		t.Error(problem)
	}
}

func (p plane) onTerminal(t *testing.T, columns uint16, args ...string) (code int, lines, moving []string) {
	t.Helper()
	term := startTerminal(t, columns, p, args...)
	code, lines = term.wait(t)
	return code, lines, term.screen.moving
}

func wantScreen(t *testing.T, code, wantCode int, lines []string, text string) {
	t.Helper()
	want := strings.Fields(text)
	if code != wantCode {
		t.Errorf("exit code %d, want %d", code, wantCode)
	}
	// A line that does not fit continues in the next one.
	if diff := cmp.Diff(want, strings.Fields(strings.Join(lines, " "))); diff != "" {
		t.Errorf("on the screen (-want +got):\n%s", diff)
	}
}

func wantMoving(t *testing.T, moving []string, text string) {
	t.Helper()
	for _, line := range moving {
		if strings.Contains(line, text) {
			return
		}
	}
	t.Errorf("%q was never shown in %q", text, moving)
}

// On a terminal, "xpkg up" shows its progress and its addresses, and stops with Ctrl-C.
func TestUpOnTerminal(t *testing.T) {
	w := newWorkshop(t)
	dir := w.newData(t, "terminal")
	term := startTerminal(t, 100, plane{workshop: w}, upArgs(dir)...)
	until(t, "xpkg up is ready", func(context.Context) (string, bool) {
		said := term.output.String()
		return said, strings.Contains(said, "Press Ctrl-C to stop it.")
	})
	report, err := up.Status(dir)
	if err != nil || !report.Ready {
		t.Fatalf("not ready: %+v, %v", report, err)
	}
	const interrupt = "\x03"
	if _, err := term.master.WriteString(interrupt); err != nil {
		t.Fatal(err)
	}
	code, lines := term.wait(t)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	text := strings.Join(lines, "\n")
	for _, line := range []string{
		"\n  API server   " + report.State.Server + " (Kubernetes " + report.State.Kubernetes + ")\n",
		"\n  registry     " + report.State.Registry + "\n",
		"\n  export KUBECONFIG=" + report.State.Kubeconfig + "\n",
		"\nXRDs of Configurations are installed but not established: ",
		"\nPress Ctrl-C to stop it.",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the screen lacks %q", line)
		}
	}
	// The rest is one line: the log of the manager's first start.
	if logged := strings.Count(text, "level="); logged > 1 || len(lines) > 25 {
		t.Errorf("too much on the screen:\n%s", text)
	}
	wantMoving(t, term.screen.moving, "starting the control plane")
	wantMoving(t, term.screen.moving, "stopping")
	if r, err := up.Status(dir); err != nil || r.Running {
		t.Errorf("after Ctrl-C: %+v, %v", r, err)
	}
}
