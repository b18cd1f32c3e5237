//go:build unix

package up_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
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

func TestDirectoryThatIsNotTaken(t *testing.T) {
	withoutControlPlane(t)
	tests := map[string]struct {
		files map[string]string
		want  failure.Code
	}{
		"of somebody else":       {map[string]string{"thesis.txt": "years of work"}, up.ErrDataDirForeign},
		"version of something":   {map[string]string{"version.json": `{"version":"1.2.3"}`}, up.ErrDataDirForeign},
		"of a later xpkg":        {map[string]string{"version.json": `{"kind":"xpkg control plane","layout":2}`}, up.ErrDataDirVersion},
		"of a damaged version":   {map[string]string{"version.json": `{"kind":`}, up.ErrDataDirUnusable},
		"locked by no xpkg ever": {map[string]string{"up.lock": "", "thesis.txt": ""}, up.ErrDataDirForeign},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range test.files {
				write(t, filepath.Join(dir, file), content)
			}
			_, detached := up.Detach(t.Context(), dir, nil)
			_, status := up.Status(dir)
			for command, err := range map[string]error{
				"run":    up.Run(t.Context(), up.Options{Dir: dir}),
				"detach": detached,
				"status": status,
			} {
				if !test.want.Is(err) {
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
		if err := up.Run(t.Context(), up.Options{Dir: dir}); !up.ErrDataDirUnusable.Is(err) {
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
	if err := up.Stop(t.Context(), dir); !up.ErrNotRunning.Is(err) {
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
			if !up.ErrPortInUse.Is(err) {
				t.Fatalf("got %v, want PortInUse", err)
			}
			said := failure.Message(err)
			for _, word := range []string{strconv.Itoa(port), test.who, test.flag} {
				if !strings.Contains(said, word) {
					t.Errorf("%q does not name %s", said, word)
				}
			}
		})
	}
}

func TestProgramMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for name, program := range map[string]string{
		"nowhere":         "",
		"no such file":    "/no/such/file",
		"not a program":   "directory_test.go",
		"a folder, still": t.TempDir(),
	} {
		t.Setenv(child.Variable, program)
		if err := up.Run(t.Context(), up.Options{Dir: dir}); !up.ErrControlPlaneMissing.Is(err) {
			t.Errorf("%s: got %v, want ControlPlaneMissing", name, err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data directory was made")
	}
}

// A program that ends without a word is reported, and nothing is left behind.
func TestProgramSaysNothing(t *testing.T) {
	t.Setenv(child.Variable, "/bin/false")
	dir := t.TempDir()
	err := up.Run(t.Context(), up.Options{Dir: dir})
	if !up.ErrControlPlaneFailed.Is(err) {
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
		if got := up.DefaultDataDir(); got != want {
			t.Errorf("%q: got %s, want %s", data, got, want)
		}
	}
}
