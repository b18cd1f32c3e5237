// Package gosource reads the source of the project, for tests of its texts and declarations.
package gosource

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Each calls visit for each Go file below internal and pkg that is no test. Root is the path of the repository.
func Each(t testing.TB, root string, visit func(files *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, dir := range []string{"internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			visit(files, file)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
