//go:build unix

package up_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/google/go-cmp/cmp"

	freeport "github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// withoutControlPlane lets a test run up to the point where the program would be
// started, with a program that does nothing.
func withoutControlPlane(t *testing.T) {
	t.Helper()
	t.Setenv(child.Variable, os.Args[0])
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

func TestForeignDirectoryIsRefused(t *testing.T) {
	withoutControlPlane(t)
	tests := map[string]struct {
		files map[string]string
		want  errcode.Code
	}{
		"of another program":   {map[string]string{"thesis.txt": "years of work"}, up.ErrDataDirForeign},
		"version of something": {map[string]string{"version.json": `{"version":"1.2.3"}`}, up.ErrDataDirForeign},
		"of a later xpkg": {
			map[string]string{"version.json": `{"kind":"xpkg control plane","layout":2}`}, up.ErrDataDirVersion,
		},
		"of a damaged version":   {map[string]string{"version.json": `{"kind":`}, up.ErrDataDirUnusable},
		"locked by no xpkg ever": {map[string]string{"up.lock": "", "thesis.txt": ""}, up.ErrDataDirForeign},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range test.files {
				write(t, filepath.Join(dir, file), content)
			}
			_, detached := up.Detach(t.Context(), dir, noTests)
			_, status := up.Status(dir)
			for command, err := range map[string]error{
				"run":    up.Run(t.Context(), up.Options{Dir: dir}),
				"detach": detached,
				"status": status,
			} {
				if !errors.Is(err, test.want) {
					t.Errorf("%s: got %v, want %s", command, err, test.want.Name)
				}
			}
			if diff := cmp.Diff(test.files, list(t, dir)); diff != "" {
				t.Errorf("the directory was touched: %s", diff)
			}
		})
	}
}

func TestDirectoryUnusable(t *testing.T) {
	withoutControlPlane(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for name, dir := range map[string]string{"no name": "", "a file": file, "in a file": filepath.Join(file, "dir")} {
		if err := up.Run(t.Context(), up.Options{Dir: dir}); !errors.Is(err, up.ErrDataDirUnusable) {
			t.Errorf("%s: got %v, want DataDirUnusable", name, err)
		}
	}
}

func TestStatusOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	r, err := up.Status(dir)
	if err != nil || r.Running || r.Ready {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("looking made the directory")
	}
	if err := up.Stop(t.Context(), dir); !errors.Is(err, up.ErrNotRunning) {
		t.Errorf("stop: got %v, want ControlPlaneNotRunning", err)
	}
}

func TestPortInUse(t *testing.T) {
	withoutControlPlane(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	tests := map[string]struct {
		options up.Options
		flag    string
		who     string
	}{
		"API server": {up.Options{Port: port}, "--port", "the API server"},
		"registry":   {up.Options{RegistryPort: port}, "--registry-port", "the registry"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.Dir = t.TempDir()
			test.options.Progress = func(e up.Event) { t.Errorf("started %s", e.Stage) }
			err := up.Run(t.Context(), test.options)
			if !errors.Is(err, up.ErrPortInUse) {
				t.Fatalf("got %v, want PortInUse", err)
			}
			said := errcode.Message(err)
			for _, word := range []string{strconv.Itoa(port), test.who, test.flag} {
				if !strings.Contains(said, word) {
					t.Errorf("%q does not name %s", said, word)
				}
			}
		})
	}
}

// A control plane that never responds, as with a damaged write-ahead log, does not block a start
// forever.
func TestStartHasADeadline(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "silent")
	// The file is executable.
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho the log of etcd >&2\ncat >/dev/null\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(child.Variable, silent)
	dir := t.TempDir()
	err := up.Run(t.Context(), up.Options{Dir: dir, StartTimeout: time.Second})
	if !errors.Is(err, up.ErrNotReady) {
		t.Fatalf("got %v, want ControlPlaneNotReady", err)
	}
	for _, word := range []string{dir, "within 1s", "the log of etcd", "controlplane.log", "--start-timeout", "mv " + dir +
		"/etcd"} {
		if said := errcode.Message(err); !strings.Contains(said, word) {
			t.Errorf("%q does not name %s", said, word)
		}
	}
	wantNotRunning(t, dir)
	t.Setenv(timeoutVariable, "1s")
	if _, err := up.Detach(limited(t), dir, arguments(dir, 0, 0)); !errors.Is(err, up.ErrNotReady) ||
		!strings.Contains(err.Error(), "within 1s") {
		t.Errorf("detached: got %v, want ControlPlaneNotReady with its reason", err)
	}
	wantNotRunning(t, dir)
}

// The log contains all starts. A failure quotes the lines of its own start only.
func TestFailureQuotesTheLogOfItsOwnStart(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ script, with, without string }{
		{"echo first reason >&2; exit 1", "first reason", "second"},
		{"echo second reason >&2; exit 1", "second reason", "first"},
		{"exit 1", "ended before it was ready", "reason"},
		{"cat >/dev/null", "not ready within 1s", "reason"},
	} {
		failing := filepath.Join(t.TempDir(), "failing")
		// The file is executable.
		if err := os.WriteFile(failing, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(child.Variable, failing)
		err := up.Run(t.Context(), up.Options{Dir: dir, StartTimeout: time.Second})
		if err == nil || !strings.Contains(err.Error(), test.with) || strings.Contains(err.Error(), test.without) {
			t.Errorf("%s: got %v, want %q and not %q", test.script, err, test.with, test.without)
		}
	}
}

// Installed packages name the port of the registry, so a chosen port stays the same at the
// next start, unless that names another port.
func TestPortsAreKept(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	withoutControlPlane(t)
	_, free, err := net.SplitHostPort(freeport.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	for file, who := range map[string]string{"registry.port": "installed packages", "apiserver.port": "kubeconfigs"} {
		for _, asked := range []int{0, up.LastPort} {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "version.json"), `{"kind":"xpkg control plane","layout":1}`)
			for _, other := range []string{"registry.port", "apiserver.port"} {
				write(t, filepath.Join(dir, other), free+"\n")
			}
			write(t, filepath.Join(dir, file), strconv.Itoa(port)+"\n")
			err := up.Run(t.Context(), up.Options{Dir: dir, Port: asked, RegistryPort: asked})
			if !errors.Is(err, up.ErrPortInUse) {
				t.Fatalf("%s, %d: got %v, want PortInUse", file, asked, err)
			}
			message := errcode.Message(err)
			for _, word := range []string{taken.Addr().String(), who + " name this address", "port"} {
				if !strings.Contains(message, word) {
					t.Errorf("%q does not name %s", message, word)
				}
			}
		}
	}
}

func TestMovedRegistryIsReported(t *testing.T) {
	t.Setenv(child.Variable, "/bin/false")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "version.json"), `{"kind":"xpkg control plane","layout":1}`)
	write(t, filepath.Join(dir, "registry.port"), "1\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	var warnings []string
	_ = up.Run(t.Context(), up.Options{Dir: dir, RegistryPort: port, Progress: func(e up.Event) {
		if e.Warning != "" {
			warnings = append(warnings, e.Warning)
		}
	}})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "--registry-port 1 ") ||
		!strings.Contains(warnings[0], strconv.Itoa(port)) {
		t.Errorf("got %q", warnings)
	}
}

func TestExecutableMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for name, program := range map[string]string{
		"nowhere":         "",
		"no such file":    "/no/such/file",
		"not a program":   "directory_test.go",
		"a folder, still": t.TempDir(),
	} {
		t.Setenv(child.Variable, program)
		if err := up.Run(t.Context(), up.Options{Dir: dir}); !errors.Is(err, up.ErrControlPlaneMissing) {
			t.Errorf("%s: got %v, want ControlPlaneMissing", name, err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data directory was made")
	}
}

// A program that exits without a report is an error, and no process is left behind.
func TestUnresponsiveRuntimeIsNotAvailable(t *testing.T) {
	t.Setenv(child.Variable, "/bin/false")
	dir := t.TempDir()
	err := up.Run(t.Context(), up.Options{Dir: dir})
	if !errors.Is(err, up.ErrControlPlaneFailed) {
		t.Fatalf("got %v, want ControlPlaneFailed", err)
	}
	wantNotRunning(t, dir)
}

func TestDefaultDataDir(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	for data, want := range map[string]string{
		"":              "/home/ann/.local/share/xpkg/default",
		"/data":         "/data/xpkg/default",
		"relative/path": "/home/ann/.local/share/xpkg/default",
	} {
		t.Setenv("XDG_DATA_HOME", data)
		if got := datadir.Default(); got != want {
			t.Errorf("%q: got %s, want %s", data, got, want)
		}
	}
}
