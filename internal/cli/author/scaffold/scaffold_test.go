package scaffold

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

const repository = "../../../.."

// packages are one package of each kind.
func packages() []Package {
	var out []Package
	for _, kind := range []string{"provider", "configuration", "function", "project"} {
		out = append(out, Package{
			Kind: kind, Name: kind + "-boats", Module: "example.org/" + kind + "-boats", Group: "boats.acme.org",
			Repository: "ghcr.io/acme/" + kind + "-boats",
		})
	}
	return out
}

// write writes a package to a new folder.
func write(t *testing.T, p Package) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), p.Name)
	count, err := p.Write(folder)
	if err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		t.Fatal("no files")
	}
	return folder
}

// inModule runs a command of Go in a folder.
func inModule(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A new package passes all checks without a warning.
func TestPackagesPassAllChecks(t *testing.T) {
	for _, p := range packages() {
		t.Run(p.Kind, func(t *testing.T) {
			root := write(t, p)
			if p.Kind == "provider" || p.Kind == "function" {
				root = filepath.Join(root, "package")
			}
			opts := xpkg.FolderOptions{ExamplesRoot: "examples"}
			if file := project.Find(os.DirFS(root), nil); file != "" {
				var err error
				if _, opts.Layout, err = project.Open(os.DirFS(root), file, xpkg.Limits{}); err != nil {
					t.Fatal(err)
				}
			}
			folder, err := xpkg.ReadFolder(os.DirFS(root), opts)
			if err != nil {
				t.Fatal(err)
			}
			read := xpkg.ReadOptions{Policy: xpkg.PolicyBuild()}
			for _, f := range check.Folder(folder, read, check.Options{
				Policy: xpkg.PolicyBuild(), CRDs: crdvalidation.ValidateCRD,
			}) {
				t.Error(f)
			}
		})
	}
}

// The programs of new packages compile, and their tests pass, with the modules in their go.mod.
func TestProgramsPassTheirTests(t *testing.T) {
	lane.Full(t, "internal/cli/author/scaffold.TestGeneratedFilesOfTheProviderAreUpToDate")
	if testing.Short() {
		t.Skip("compiles two programs")
	}
	for _, p := range packages() {
		if p.Kind == "configuration" || p.Kind == "project" {
			continue
		}
		t.Run(p.Kind, func(t *testing.T) {
			folder := write(t, p)
			inModule(t, folder, "vet", "./...")
			inModule(t, folder, "test", "./...")
		})
	}
}

var requirement = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// requirements returns the versions in a go.mod by module.
func requirements(text string) map[string]string {
	out := map[string]string{}
	for _, m := range requirement.FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// The templates require the versions of modules that this repository uses, so that an upgrade reaches them.
func TestTemplatesUseTheVersionsOfThisRepository(t *testing.T) {
	for kind, source := range map[string]string{"provider": "go.mod", "function": "examples/function-greet/go.mod"} {
		text, err := os.ReadFile(filepath.Join(repository, source))
		if err != nil {
			t.Fatal(err)
		}
		template, err := files.ReadFile("files/" + kind + "/go.mod.tmpl")
		if err != nil {
			t.Fatal(err)
		}
		want, got := requirements(string(text)), requirements(string(template))
		maps.DeleteFunc(want, func(module, _ string) bool { return got[module] == "" })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: change go.mod.tmpl and go.sum.tmpl:\n%s", kind, diff)
		}
	}
	text, err := os.ReadFile(filepath.Join(repository, "tools", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := requirements(string(text))["sigs.k8s.io/controller-tools"]; controllerGen != want {
		t.Errorf("controllerGen is %s, want %s", controllerGen, want)
	}
}

// The generated files of the provider agree with its Go types.
func TestGeneratedFilesOfTheProviderAreUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles controller-gen")
	}
	generator := filepath.Join(t.TempDir(), "controller-gen")
	inModule(
		t, repository, "build", "-modfile=tools/go.mod", "-o", generator, "sigs.k8s.io/controller-tools/cmd/controller-gen",
	)
	p := packages()[0]
	folder := write(t, p)
	cmd := exec.Command(generator, "object", "crd", "paths=./api/...", "output:crd:artifacts:config=package/crds")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(content), string(got)); diff != "" {
			t.Errorf("%s (-template +generated):\n%s", name, diff)
		}
	}
}

// A folder with files stays as it is, and a failed write leaves nothing behind.
func TestWriteIsCompleteOrDoesNothing(t *testing.T) {
	p := packages()[0]
	t.Run("used folder", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "mine"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write(folder); !errors.Is(err, ErrFolderNotEmpty) {
			t.Error(err)
		}
		if got := names(t, folder); !slices.Equal(got, []string{"mine"}) {
			t.Errorf("the folder contains %q", got)
		}
	})
	t.Run("name that no file can have", func(t *testing.T) {
		parent := t.TempDir()
		long := p
		long.Group = strings.Repeat("a", 300) + ".org"
		if _, err := long.Write(filepath.Join(parent, "new")); err == nil {
			t.Error("no error")
		}
		if got := names(t, parent); len(got) > 0 {
			t.Errorf("left behind: %q", got)
		}
	})
	t.Run("empty folder", func(t *testing.T) {
		if _, err := p.Write(t.TempDir()); err != nil {
			t.Error(err)
		}
	})
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
