package program

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/up/child"
)

// proxy makes the go command read modules from a folder with one version of the module of the control plane.
func proxy(t *testing.T, source string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		prerequisite.Missing(t, "go is not in PATH")
	}
	dir := t.TempDir()
	versions := filepath.Join(dir, Module, "@v")
	gomod := "module " + Module + "\n\ngo 1.22\n"
	write := func(name, content string) {
		if err := errors.Join(
			os.MkdirAll(versions, 0o755), os.WriteFile(filepath.Join(versions, name), []byte(content), 0o600),
		); err != nil {
			t.Fatal(err)
		}
	}
	write("list", "v0.9.9\n")
	write("v0.9.9.info", `{"Version":"v0.9.9"}`)
	write("v0.9.9.mod", gomod)
	var archive strings.Builder
	z := zip.NewWriter(&archive)
	// The comment is new in each run, so that the build cache of the machine does not contain the program.
	for name, content := range map[string]string{"go.mod": gomod, "main.go": source + "\n// " + dir + "\n"} {
		f, err := z.Create(Module + "@v0.9.9/" + name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write("v0.9.9.zip", archive.String())
	cache := t.TempDir()
	for name, value := range map[string]string{"GOPROXY": "file://" +
		dir, "GONOSUMDB": "*", "GOMODCACHE": cache, "GOTOOLCHAIN": "local"} {
		t.Setenv(name, value)
	}
	// The module cache is read-only.
	t.Cleanup(func() {
		if out, err := exec.Command("go", "clean", "-modcache").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestControlPlaneIsBuiltFromTheModuleProxy proves that a program with a version needs only Go to get its control
// plane, and that the program is found afterwards.
func TestControlPlaneIsBuiltFromTheModuleProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	proxy(t, "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"control plane\") }\n")
	folder := filepath.Join(t.TempDir(), "bin", "v0.9.9")
	compiled := 0
	path, err := Build(t.Context(), Options{Version: "v0.9.9", Folder: folder, Progress: func(n int) { compiled = n }})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).Output(); err != nil || string(out) != "control plane\n" || compiled == 0 {
		t.Errorf("%q, %v, %d packages compiled", out, err, compiled)
	}
	if found, err := child.Find(func(string) string { return "" }, folder); err != nil || found != path {
		t.Errorf("found %s, %v", found, err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) != 1 {
		t.Errorf("%q is left, %v", left, err)
	}
}

// TestFailedBuildsLeaveNothing proves that a failure names its reason and leaves no program.
func TestFailedBuildsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	proxy(t, "package main\n\nfunc main() { undefined() }\n")
	folder := filepath.Join(t.TempDir(), "bin")
	for version, want := range map[string]string{
		"v0.9.9": "cannot compile the control plane", "v1.0.0": "cannot download " + Module + " v1.0.0",
	} {
		if _, err := Build(t.Context(), Options{Version: version, Folder: folder}); !errors.Is(err, ErrBuild) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, Options{Version: "v0.9.9", Folder: folder}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Build(t.Context(), Options{Version: "v0.9.9", Folder: folder}); !errors.Is(err, ErrBuild) {
		t.Errorf("without Go: %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

func TestLinkerFlagsNameTheVersionOfKubernetes(t *testing.T) {
	got := versionFlags(kubernetesVersion(), "require (\n\tk8s.io/kubernetes v1.37.1\n)\n")
	if !strings.Contains(got, "version.gitVersion=v1.37.1 ") || !strings.Contains(got, "version.gitMinor=37 ") {
		t.Error(got)
	}
	if got := versionFlags(kubernetesVersion(), "module x\n"); got != "" {
		t.Error(got)
	}
}
