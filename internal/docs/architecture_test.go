package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func document(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	braces = regexp.MustCompile(`^(.*)\{([^}]*)\}(.*)$`)
	// placeIn is a path in the repository.
	placeIn = regexp.MustCompile(
		`^(?:apis|charts|cmd|controlplane|docs|examples|hack|internal|pkg|test|testdata|tools)/[\w./{},-]*$`,
	)
)

// expandBraces returns the paths of a pattern such as internal/cli/{author,artifact}.
func expandBraces(path string) []string {
	m := braces.FindStringSubmatch(path)
	if m == nil {
		return []string{path}
	}
	var out []string
	for part := range strings.SplitSeq(m[2], ",") {
		out = append(out, m[1]+part+m[3])
	}
	return out
}

// contributorDocuments returns the documents for contributors.
func contributorDocuments(t *testing.T) []string {
	t.Helper()
	design, err := filepath.Glob(filepath.Join("..", "..", "docs", "design", "*.md"))
	if err != nil || len(design) == 0 {
		t.Fatalf("%d documents in docs/design, error %v", len(design), err)
	}
	out := []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/dependencies.md", "docs/performance.md"}
	for _, path := range design {
		out = append(out, "docs/design/"+filepath.Base(path))
	}
	return out
}

// TestPathsInDocumentsExist proves that the paths in the documents for contributors exist.
func TestPathsInDocumentsExist(t *testing.T) {
	for _, file := range contributorDocuments(t) {
		for _, m := range quoted.FindAllStringSubmatch(document(t, file), -1) {
			if !placeIn.MatchString(m[1]) {
				continue
			}
			for _, path := range expandBraces(m[1]) {
				if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path))); err != nil && !isTest(t, path) {
					t.Errorf("%s names %s: %v", file, path, err)
				}
			}
		}
	}
}

// isTest reports whether a path has the form folder.TestName, and the test exists.
func isTest(t *testing.T, path string) bool {
	t.Helper()
	folder, test, ok := strings.Cut(path, ".")
	return ok && hasTest(t, filepath.Join("..", "..", filepath.FromSlash(folder)), test)
}

var makeTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]+)(?:$|[ `])")

// TestMakeTargetsExist proves that the targets that the documents name are in the Makefile, and that CONTRIBUTING.md
// names every target that has a help text.
func TestMakeTargetsExist(t *testing.T) {
	makefile, contributing := document(t, "Makefile"), document(t, "CONTRIBUTING.md")
	for _, file := range contributorDocuments(t) {
		blocks := document(t, file)
		for _, m := range makeTarget.FindAllStringSubmatch(blocks, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which is not in the Makefile", file, m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(makefile, -1) {
		if m[1] != "help" && !regexp.MustCompile(`make `+m[1]+`\b`).MatchString(contributing) {
			t.Errorf("CONTRIBUTING.md does not name make %s", m[1])
		}
	}
}

// TestPipelineHasTheStepsOfTheReconciler proves that the diagram of ARCHITECTURE.md has the steps of reconcileActive in
// their order: the name of each method contains the word of its step.
func TestPipelineHasTheStepsOfTheReconciler(t *testing.T) {
	_, diagram, _ := strings.Cut(document(t, "ARCHITECTURE.md"), "(the rest only for the active one)")
	diagram, _, _ = strings.Cut(diagram, "```")
	var words []string
	for _, m := range regexp.MustCompile(`(?m)^ +│ ([a-z]+)  `).FindAllStringSubmatch(diagram, -1) {
		words = append(words, m[1])
	}
	steps := stepsOf(t, filepath.Join("..", "controller", "revisions", "revisions.go"), "reconcileActive")
	if len(words) == 0 || len(steps) == 0 {
		t.Fatalf("%d words, %d steps", len(words), len(steps))
	}
	last := -1
	for _, step := range steps {
		i := slices.IndexFunc(words[max(last, 0):], func(w string) bool { return strings.Contains(strings.ToLower(step), w) })
		if at := max(last, 0) + i; i < 0 || at > last+1 {
			t.Errorf("%s is not in the diagram after %v", step, words[:last+1])
		} else {
			last = at
		}
	}
	if last != len(words)-1 {
		t.Errorf("the diagram has the further steps %v", words[last+1:])
	}
}

// stepsOf returns the methods that a function passes to run, in their order.
func stepsOf(t *testing.T, path, function string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "run" {
				return true
			}
			for _, argument := range call.Args {
				if s, ok := argument.(*ast.SelectorExpr); ok {
					out = append(out, s.Sel.Name)
				}
			}
			return false
		})
	}
	return out
}
