package program_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestListWatch proves that `xpkg list --watch` prints the changes of a package from its install to its deletion, until
// it is interrupted.
func TestListWatch(t *testing.T) {
	p := shared(t)
	ref := p.publish(t, providerFolder(t, "watched", "watched.program.test", 1), "program/watched")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program(), "list", "--watch")
	cmd.Env = append(p.env, "KUBECONFIG="+p.Kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	expect := func(pattern string) {
		t.Helper()
		var seen []string
		for want := regexp.MustCompile(pattern); lines.Scan(); {
			if seen = append(seen, lines.Text()); want.MatchString(lines.Text()) {
				return
			}
		}
		t.Fatalf("no line matches %s: %q", pattern, seen)
	}
	p.xpkg(t, "install", "provider", ref, "watched", "--wait", "2m")
	expect(`^NAME +INSTALLED +HEALTHY +VERSION +PACKAGE +AGE +INSTALL REASON$`)
	expect(`^provider/watched +True +True +v[0-9.]+ +` + regexp.QuoteMeta(p.Registry+"/program/watched") +
		` +[0-9]+s +explicit$`)
	p.xpkg(t, "uninstall", "provider", "watched", "--wait", "2m", "--yes")
	expect(`^provider/watched +Deleted +- `)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("the exit code is %d, want 130", code)
	}
}
