package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// TestDevDeploysEachContentOnce checks the commands that deployments run, and that a failed build runs no other
// command.
func TestDevDeploysEachContentOnce(t *testing.T) {
	var commands []string
	var messages bytes.Buffer
	digest, broken, failing := strings.Repeat("a", 64), error(nil), "build"
	d := &deployment{
		DevCmd:   &DevCmd{Folder: "package", EmbedGoProgram: "cmd/boats", Repository: "dev/boats", Wait: time.Minute},
		messages: &messages,
		state:    up.State{Registry: "127.0.0.1:15000", DataDir: "plane", Kubeconfig: "plane/admin.conf"}, file: "boats.xpkg",
		run: func(_ context.Context, out io.Writer, args ...string) error {
			commands = append(commands, strings.Join(args, " "))
			if args[0] == failing && broken != nil {
				return broken
			}
			if args[0] == "build" {
				fmt.Fprintf(out, "boats.xpkg: Provider boats with 1 object, sha256:%s\n", digest)
			}
			return nil
		},
	}
	deploy := func(want error) {
		t.Helper()
		if err := d.deploy(t.Context()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	const build = "build -f package -o boats.xpkg --embed-go-program cmd/boats"
	others := func(digit string) []string {
		ref := "127.0.0.1:15000/dev/boats:v0.0.0-dev.x" + strings.Repeat(digit, 12)
		return []string{build, "push -f boats.xpkg " + ref + " --data-dir plane", "update --install " + ref +
			" --yes --wait 1m0s --kubeconfig plane/admin.conf"}
	}
	deploy(nil)
	deploy(nil)
	want := append(others("a"), build)
	broken = errors.New("broken")
	deploy(broken)
	want = append(want, build)
	broken, digest = nil, strings.Repeat("b", 64)
	deploy(nil)
	want = append(want, others("b")...)
	// A version that does not become healthy is installed, so the former content is deployed again.
	broken, failing, digest = errors.New("not healthy"), "update", strings.Repeat("c", 64)
	deploy(broken)
	broken, digest = nil, strings.Repeat("b", 64)
	deploy(nil)
	if diff := cmp.Diff(append(append(want, others("c")...), others("b")...), commands); diff != "" {
		t.Error(diff)
	}
	if messages.String() != "the content of the package is unchanged\n" {
		t.Errorf("got %q", messages.String())
	}
}

// The functions of a Project are built for the control plane, and pushed with the Configuration.
func TestDevDeploysTheFunctionsOfAProject(t *testing.T) {
	dir := t.TempDir()
	const text = "apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata: {name: fleets}\nspec: {repository: x.io/acme/fleets}\n"
	if err := os.MkdirAll(filepath.Join(dir, "functions", "compose"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "crossplane-project.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var commands []string
	function, configuration := strings.Repeat("a", 64), strings.Repeat("b", 64)
	d := &deployment{
		DevCmd: &DevCmd{Folder: dir, Repository: "dev/fleets"}, messages: io.Discard,
		state: up.State{Registry: "127.0.0.1:15000", DataDir: "plane"}, file: "f.xpkg",
		read: func(context.Context) (installation, error) {
			return installation{exists: true, functions: []string{"compose"}}, nil
		},
		run: func(_ context.Context, out io.Writer, args ...string) error {
			commands = append(commands, strings.Join(args, " "))
			if args[0] == "build" {
				fmt.Fprintf(out, "f_compose.xpkg: Function fleets-compose of x.io/acme/fleets_compose, sha256:%s\n", function)
				fmt.Fprintf(out, "f.xpkg: Configuration fleets with 1 object, sha256:%s\n", configuration)
			}
			return nil
		},
	}
	if got, err := d.defaultRepository("fleets"); err != nil || got != "acme/fleets" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := d.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"build -f " + dir + " -o f.xpkg --repository 127.0.0.1:15000/dev/fleets --platform linux/" + runtime.GOARCH,
		"push -f f_compose.xpkg -f f.xpkg 127.0.0.1:15000/dev/fleets:v0.0.0-dev.xbbbbbbbbbbbb --data-dir plane",
		"update --install 127.0.0.1:15000/dev/fleets:v0.0.0-dev.xbbbbbbbbbbbb " +
			"127.0.0.1:15000/dev/fleets_compose:v0.0.0-dev.xbbbbbbbbbbbb --yes --wait 0s --kubeconfig ",
	}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Error(diff)
	}
}

func TestDevWatchesTheModuleOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "cmd", "boats")
	if err := os.MkdirAll(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module boats\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &DevCmd{Folder: filepath.Join(dir, "package"), EmbedGoProgram: program, Watch: []string{
		filepath.Join(dir, "package"),
	}}
	if diff := cmp.Diff([]string{dir, filepath.Join(dir, "package")}, c.watched()); diff != "" {
		t.Error(diff)
	}
}

// The last line after a failure says which version is active, and where the log of one that does not work is.
func TestDevReportsTheActiveVersionAfterAFailure(t *testing.T) {
	exited := &exec.ExitError{}
	for _, c := range []struct {
		kind    string
		dataDir string
		is      installation
		err     error
		want    string
	}{
		{"Provider", "", installation{}, exited, "waiting for the next change"},
		{"Provider", "", installation{exists: true}, exited, "waiting for the next change"},
		{"Provider", "", installation{
			true, nil, "boats-1", "v1", true, nil,
		}, exited, "waiting for the next change; the installed version v1 keeps running"},
		{"Provider", "", installation{
			true, nil, "boats-2", "v2", false, nil,
		}, exited, "waiting for the next change; v2 is installed and not healthy, and `xpkg logs provider/dev-boats` prints the log of its runtime"},
		{"Provider", "my plane", installation{
			true, nil, "boats-2", "v2", false, nil,
		}, exited, "waiting for the next change; v2 is installed and not healthy, and `xpkg logs provider/dev-boats --data-dir 'my plane'` prints the log of its runtime"},
		{"Configuration", "", installation{
			true, nil, "boats-2", "v2", false, nil,
		}, exited, "waiting for the next change; v2 is installed and not healthy"},
		{"Provider", "", installation{}, errors.New("no folder"), "error: no folder\nwaiting for the next change"},
	} {
		d := &deployment{
			DevCmd: &DevCmd{}, kind: c.kind, name: "dev-boats",
			read: func(context.Context) (installation, error) { return c.is, nil },
		}
		d.DataDir = c.dataDir
		if got := d.failureText(t.Context(), c.err); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// The log of a version that is activated is printed from its start, and that of a version of before from its end.
func TestDevPrintsTheLogOfEachRevisionFromItsStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, logs.Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(revision, text string) {
		t.Helper()
		w, err := logs.NewWriter(dir, revision, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	l := &revisionLogs{dir: dir, out: &out, opened: map[string]io.ReadCloser{}}
	check := func(active, want string) {
		t.Helper()
		out.Reset()
		if err := l.print(t.Context(), active); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: got %q, want %q", active, out.String(), want)
		}
	}
	write("boats-1", "before\n")
	if err := l.skip(t.Context(), []string{"boats-1", "boats-without-a-log"}); err != nil {
		t.Fatal(err)
	}
	check("", "")
	write("boats-1", "works\n")
	check("boats-1", "works\n")
	check("boats-2", "")
	write("boats-2", "cannot start\n")
	check("boats-2", "cannot start\n")
	write("boats-2", "cannot start\n")
	check("boats-2", "cannot start\n")
	write("boats-1", "works again\n")
	check("boats-1", "works again\n")
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// Messages are written at once, and an error when it is released.
func TestHeldError(t *testing.T) {
	var out strings.Builder
	h := &heldError{to: &out}
	for _, step := range []struct{ write, want string }{
		{"waiting", ""}, {" for a\nnext", "waiting for a\n"}, {"\nerror: X: failed\n  Try", "waiting for a\nnext\n"},
		{" again.\n", "waiting for a\nnext\n"},
	} {
		if n, err := h.Write([]byte(step.write)); n != len(step.write) || err != nil || out.String() != step.want {
			t.Errorf("after %q: %q, %d, %v", step.write, out.String(), n, err)
		}
	}
	if err := h.release(); err != nil || out.String() != "waiting for a\nnext\nerror: X: failed\n  Try again.\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// A package that is installed from another repository is named, because its objects belong to it.
func TestDevFindsTheInstalledPackage(t *testing.T) {
	installed := func(kind, name, reference string) v1.Package {
		p := v1.NewPackage(kind)
		p.SetName(name)
		p.PackageSpec().Package = reference
		return p
	}
	for _, c := range []struct {
		installed      v1.Package
		name           string
		inAnotherPlace bool
	}{
		{installed(v1.ProviderKind, "boats", "registry.example.org/acme/ships:v1"), "dev-boats", true},
		{installed(v1.ProviderKind, "acme-boats", "registry.example.org/acme/boats:v1"), "dev-boats", true},
		{installed(v1.ProviderKind, "dev-boats", "127.0.0.1:15000/dev/boats:v1"), "dev-boats", false},
		{installed(v1.ProviderKind, "mine", "127.0.0.1:15000/dev/boats:v1"), "mine", false},
		{installed(v1.FunctionKind, "boats", "registry.example.org/acme/boats:v1"), "dev-boats", false},
		{installed(v1.ProviderKind, "rafts", "registry.example.org/acme/rafts:v1"), "dev-boats", false},
	} {
		d := &deployment{
			DevCmd: &DevCmd{Repository: "dev/boats"}, state: up.State{Registry: "127.0.0.1:15000"}, kind: v1.ProviderKind,
			name: "dev-boats",
		}
		if other := d.findInstalled([]v1.Package{c.installed}, "boats"); (other != nil) != c.inAnotherPlace ||
			d.name != c.name {
			t.Errorf("%s %s: %v, %s", c.installed.PackageKind(), c.installed.GetName(), other, d.name)
		}
	}
}
