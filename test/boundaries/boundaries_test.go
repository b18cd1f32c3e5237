// Package boundaries_test enforces the layers that ARCHITECTURE.md describes.
package boundaries_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/xpkg-dev/xpkg/"

// pure lists packages that map values to values. They must not use a network, a
// cluster, a process or a clock.
var pure = []string{
	"internal/bootstrap", "internal/composition", "internal/function/protocol", "internal/provide", "internal/fence",
	"pkg/catalog", "pkg/catalog/docs", "pkg/desired", "pkg/crddiff", "pkg/dependency", "pkg/errcode", "pkg/firstgen",
	"pkg/packagediff", "pkg/xpkg", "pkg/xpkg/check", "pkg/xpkg/crd", "pkg/xpkg/index", "pkg/xpkg/project",
	"internal/changepolicy", "internal/imageconfig", "internal/signature",
	"internal/registry/web/fields", "internal/registry/web/untrusted", "internal/registry/access", "pkg/plan",
	"internal/revision", "pkg/rbac", "internal/runtime/manifests", "pkg/runtimedefaults", "pkg/solver", "pkg/version",
	"internal/spelling", "internal/wording",
}

// impure lists packages that pure packages must not import.
var impure = []string{
	"net", "net/http", "os/exec", "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
	"github.com/google/go-containerregistry", module + "pkg/oci/archive", module + "pkg/oci/remote",
	module + "pkg/oci/store", module + "pkg/oci/unpack", module + "internal/apply",
	module + "internal/fetch", module + "internal/controller", module + "internal/up", module + "internal/cli",
}

// imports returns the direct imports of a package, without the imports of its
// tests.
func imports(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./"+pkg)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func within(path, pkg string) bool { return path == pkg || strings.HasPrefix(path, pkg+"/") }

func TestPurePackages(t *testing.T) {
	for _, pkg := range pure {
		for _, imported := range imports(t, pkg) {
			for _, w := range impure {
				if within(imported, w) && imported != "net/netip" && imported != "net/url" {
					t.Errorf("%s is pure and must not import %s", pkg, imported)
				}
			}
		}
	}
}

// TestPublicPackagesHaveNoClient proves that a program can import every package below
// pkg/ without the Kubernetes clients and without the internals of the manager, the
// command and the control plane.
func TestPublicPackagesHaveNoClient(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`, "./pkg/...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list ./pkg/...: %v", err)
	}
	forbidden := []string{
		"k8s.io/client-go", "sigs.k8s.io/controller-runtime", module + "internal/controller", module + "internal/up",
		module + "internal/cli", module + "internal/apply", module + "internal/fetch",
	}
	for line := range strings.Lines(string(out)) {
		pkg, deps, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, dep := range strings.Fields(deps) {
			for _, f := range forbidden {
				if within(dep, f) {
					t.Errorf("%s depends on %s", strings.TrimPrefix(pkg, module), dep)
				}
			}
		}
	}
}

// TestPackagesAreSmall keeps packages and files readable.
func TestPackagesAreSmall(t *testing.T) {
	const mostFiles, mostLines = 25, 500
	// These packages have a few more files. None may be added.
	larger := map[string]int{"internal/registry": 37, "pkg/catalog": 34, "pkg/solver": 26}
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .GoFiles " "}}`, "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg, files := strings.TrimPrefix(words[0], module), words[1:]
		if most := max(mostFiles, larger[pkg]); len(files) > most {
			t.Errorf("%s has %d files, at most %d are allowed", pkg, len(files), most)
		}
		for _, name := range files {
			source, err := os.ReadFile(filepath.Join(root(t), pkg, name))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), "\n"); n > mostLines && !strings.HasPrefix(name, "zz_generated") {
				t.Errorf("%s/%s has %d lines, at most %d are allowed", pkg, name, n, mostLines)
			}
		}
	}
}

// TestManagerHasNoSandbox proves that the manager of a cluster does not depend on the
// code that runs package runtimes as processes: the command passes it in.
func TestManagerHasNoSandbox(t *testing.T) {
	for _, pkg := range []string{
		"internal/controller", "internal/bootstrap", "internal/runtime", "internal/runtime/deployment",
	} {
		cmd := exec.Command("go", "list", "-deps", "./"+pkg)
		cmd.Dir = root(t)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", pkg, err)
		}
		for dep := range strings.FieldsSeq(string(out)) {
			for _, f := range []string{
				"internal/runtime/sandbox", "internal/runtime/processruntime", "internal/up", "internal/cli",
			} {
				if within(dep, module+f) {
					t.Errorf("%s depends on %s", pkg, dep)
				}
			}
		}
	}
}

func TestOnlyTheManagerAndCommandsKnowControllers(t *testing.T) {
	for _, pkg := range []string{"internal/apply", "pkg/oci", "internal/fetch", "internal/up", "apis/pkg/v1"} {
		for _, imported := range imports(t, pkg) {
			if within(imported, "sigs.k8s.io/controller-runtime") {
				t.Errorf("%s imports %s, which belongs to the manager and the commands", pkg, imported)
			}
		}
	}
}

// Only the nested module depends on Kubernetes itself, so the library, the command and the manager stay
// small.
func TestKubernetesStaysInItsModule(t *testing.T) {
	for _, file := range []string{
		"go.mod", "tools/go.mod", "tools/lint/go.mod", "tools/helm/go.mod", "tools/image/go.mod", "tools/release/go.mod",
		"tools/alerts/go.mod", "tools/site/go.mod", "examples/function-greet/go.mod",
	} {
		raw, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, heavy := range []string{"k8s.io/kubernetes ", "go.etcd.io/etcd/server/"} {
			if strings.Contains(string(raw), heavy) {
				t.Errorf("%s requires %s: only controlplane/go.mod and test/gitops/go.mod may", file, heavy)
			}
		}
	}
}

// The control plane has copies of the files that return the pages of the executable. If its module depended on the main
// one, it would not have the versions of dependencies with which Kubernetes is tested.
func TestCopiesInTheControlPlaneAreEqual(t *testing.T) {
	copies, err := filepath.Glob(filepath.Join(root(t), "controlplane/internal/heapgrowth/executable*.go"))
	if err != nil || len(copies) == 0 {
		t.Fatalf("there are no copies: %v", err)
	}
	for _, path := range copies {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		original := filepath.Join(root(t), "internal/idlememory", filepath.Base(path))
		want, err := os.ReadFile(original)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Replace(string(got), "package heapgrowth\n", "package idlememory\n", 1) != string(want) {
			t.Errorf("%s differs from %s: copy the change", path, original)
		}
	}
}

// TestCommandsReadUserFilesWithTheContext proves that a signal can end every read of a command: files and standard
// input are read with terminal.Env.OpenInput and ReadInput or, without an Env, with fileutil.Open and ReadFile.
func TestCommandsReadUserFilesWithTheContext(t *testing.T) {
	// allowed has the calls that read no input of a user directly, by file and function.
	allowed := map[string]string{
		"internal/cli/cli.go os.Stdin":                           "it becomes Env.Stdin, which Env.Input reads",
		"internal/cli/artifact/dockerconfig/file.go os.ReadFile": "the callers wait with fileutil.Await",
	}
	forbidden := map[string][]string{"os": {"Open", "OpenFile", "OpenRoot", "ReadFile", "DirFS", "Stdin"}, "ioutil": {
		"ReadFile", "ReadAll",
	}}
	base := root(t)
	err := filepath.WalkDir(filepath.Join(base, "internal", "cli"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, base+string(filepath.Separator)))
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := call.X.(*ast.Ident)
			if !ok || !slices.Contains(forbidden[from.Name], call.Sel.Name) {
				return true
			}
			key := name + " " + from.Name + "." + call.Sel.Name
			if _, ok := allowed[key]; !ok {
				t.Errorf(
					"%s reads with %s.%s, which no signal ends: use terminal.Env.OpenInput or fileutil.OpenFolder", name, from.Name,
					call.Sel.Name,
				)
			}
			delete(allowed, key)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range allowed {
		t.Errorf("%s is allowed and is not there", key)
	}
}
