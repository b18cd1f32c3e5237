package program_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
)

// output collects the output of a process that runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestDevInstallsEachChangeAndKeepsTheVersionBeforeABrokenOne runs `xpkg dev` on a Configuration until it is
// interrupted.
func TestDevInstallsEachChangeAndKeepsTheVersionBeforeABrokenOne(t *testing.T) {
	p := shared(t)
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	definition := func(description string) string {
		return `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: skiffs.dev.test}
spec:
  group: dev.test
  names: {kind: Skiff, plural: skiffs}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, description: ` + description + `}}}
`
	}
	write("crossplane.yaml", "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: skiffs}\n")
	write("definition.yaml", definition("first"))
	var printed output
	cmd := exec.Command(p.program(), "dev", folder, "--data-dir", p.DataDir, "--repository", "dev/skiffs")
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // It has ended unless the test failed.
	c := newClient(t, p.Kubeconfig)
	installed := func(what, not string) (is string) {
		t.Helper()
		until(t, what, func(ctx context.Context) (string, bool) {
			pkg := &v1.Configuration{}
			err := c.Get(ctx, client.ObjectKey{Name: "dev-skiffs"}, pkg)
			is = pkg.Spec.Package
			return printed.String(), err == nil && is != not && strings.Contains(printed.String(), is+")")
		})
		return is
	}
	first := installed("the package is installed", "")
	write("definition.yaml", definition("second"))
	second := installed("the change is installed", first)

	write("definition.yaml", "kind: [")
	until(t, "the broken version is reported", func(context.Context) (string, bool) {
		return printed.String(), strings.Contains(printed.String(), "the installed version "+
			second[strings.LastIndex(second, ":")+1:]+" keeps running")
	})
	pkg := &v1.Configuration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "dev-skiffs"}, pkg); err != nil || pkg.Spec.Package != second {
		t.Errorf("got %s, %v, want %s", pkg.Spec.Package, err, second)
	}
	write("definition.yaml", definition("third"))
	installed("the corrected version is installed", second)

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &printed)
	}
	if !strings.Contains(printed.String(), "remove it with `xpkg uninstall configuration dev-skiffs`") {
		t.Errorf("got\n%s", &printed)
	}
	p.xpkg(t, "uninstall", "configuration", "dev-skiffs", "--yes", "--wait", "2m")
}

// TestDevPrintsTheLogOfAVersionThatCrashes proves that the lines of a runtime are printed from its start: those of a
// version that works, and those of a version that never becomes healthy, with its name and the command that prints the
// log again.
func TestDevPrintsTheLogOfAVersionThatCrashes(t *testing.T) {
	lane.Full(t, "test/program.TestScripts")
	w := newWorkshop(t)
	w.env = append(w.env, program.GoFolders(t)...)
	p := w.withRuntimes(t, "crash")
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module barges\n\ngo 1.24\n")
	write("package/crossplane.yaml", "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: barges}\n")
	write(
		"main.go",
		"package main\n\nimport \"time\"\n\nfunc main() {\n\tprintln(\"barges: started\")\n\ttime.Sleep(time.Hour)\n}\n",
	)
	var printed output
	cmd := exec.Command(
		p.program(), "dev", filepath.Join(folder, "package"), "--embed-go-program", folder, "--data-dir", p.DataDir, "--wait",
		"20s",
	)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(p.env, "GOFLAGS=-buildvcs=false"), &printed, &printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // It has ended unless the test failed.
	prints := func(lines ...string) {
		t.Helper()
		until(t, strings.Join(lines, ", "), func(context.Context) (string, bool) {
			text := printed.String()
			return text, !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(text, line) })
		})
	}
	prints("barges: started")
	write(
		"main.go",
		"package main\n\nimport \"os\"\n\nfunc main() {\n\tprintln(\"barges: cannot read the settings\")\n\tos.Exit(7)\n}\n",
	)
	prints("barges: cannot read the settings",
		"is installed and not healthy, and `xpkg logs provider/dev-barges --data-dir "+
			p.DataDir+"` prints the log of its runtime")

	// An interrupt while a version is waited for is no error. It reaches all processes, as from a terminal.
	write(
		"main.go",
		"package main\n\nimport \"os\"\n\nfunc main() {\n\tprintln(\"barges: cannot read the charts\")\n\tos.Exit(7)\n}\n",
	)
	prints("barges: cannot read the charts")
	before := len(printed.String())
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &printed)
	}
	if after := printed.String()[before:]; strings.Contains(after, "error: ") {
		t.Errorf("the interrupt is an error:\n%s", after)
	}
}
