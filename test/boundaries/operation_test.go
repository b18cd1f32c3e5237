package boundaries_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheLibraryKnowsNoCommands proves that only the program, and packages that describe it, import commands:
// operations and the state of packages can be used without a command line and a terminal.
func TestTheLibraryKnowsNoCommands(t *testing.T) {
	allowed := []string{"internal/cli", "internal/docs", "internal/testing"}
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./internal/...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module)
		if slices.ContainsFunc(allowed, func(a string) bool { return within(pkg, a) }) {
			continue
		}
		for _, imported := range words[1:] {
			if within(imported, module+"internal/cli") {
				t.Errorf("%s imports %s", pkg, imported)
			}
		}
	}
}

// TestOneWriterOfPackages proves that commands write packages only with internal/operation, and that one file of it
// writes them.
func TestOneWriterOfPackages(t *testing.T) {
	calls := map[string]int{}
	for _, folder := range []string{
		"internal/cli/packages", "internal/cli/dependencies", "internal/inventory", "internal/operation",
	} {
		files, err := filepath.Glob(filepath.Join(root(t), folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if writesObject(n) {
					calls[folder+"/"+filepath.Base(file)]++
				}
				return true
			})
		}
	}
	want := map[string]int{
		"internal/operation/writer.go":   4, // create, update, delete, and a patch of the metadata
		"internal/operation/transact.go": 1, // a transaction
		"internal/operation/approval.go": 2, // an approval on a revision, and of a transaction
	}
	for file, n := range calls {
		if want[file] != n {
			t.Errorf("%s writes objects in %d places, want %d: use internal/operation", file, n, want[file])
		}
	}
	for file, n := range want {
		if calls[file] != n {
			t.Errorf("%s writes objects in %d places, want %d", file, calls[file], n)
		}
	}
}

// writesObject reports whether a node is a call of a client that writes an object.
func writesObject(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	isContext := false
	switch first := call.Args[0].(type) {
	case *ast.Ident:
		isContext = first.Name == "ctx"
	case *ast.SelectorExpr:
		isContext = first.Sel.Name == "Context"
	}
	return isContext &&
		slices.Contains([]string{"Create", "Update", "Patch", "Delete", "DeleteAllOf", "Apply"}, method.Sel.Name)
}
