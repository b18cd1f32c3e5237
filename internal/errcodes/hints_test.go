package errcodes_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/testing/gosource"
	"github.com/xpkg-dev/xpkg/internal/testing/placeholder"
)

// TestHintsCanBePasted checks that no hint, neither of a code nor of a single error, has a placeholder in a command, or
// a command without backquotes.
func TestHintsCanBePasted(t *testing.T) {
	for _, c := range append(errcodes.All(), cli.Codes()...) {
		if found := placeholder.Find(c.Fix); found != nil {
			t.Errorf("the fix of %s contains %q: %s", c.Name, found, c.Fix)
		}
	}
	hints := map[string]string{}
	gosource.Each(t, filepath.Join("..", ".."), func(files *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, text := range hintsOf(n) {
				hints[files.Position(n.Pos()).String()] = text
			}
			return true
		})
	})
	if len(hints) < 150 {
		t.Fatalf("found only %d hints", len(hints))
	}
	for at, hint := range hints {
		if found := placeholder.Find(hint); found != nil {
			t.Errorf("%s: a hint contains %q: %s", at, found, hint)
		}
		if strings.Contains(hint, `"xpkg `) {
			t.Errorf("%s: a hint has a command without backquotes: %s", at, hint)
		}
	}
}

// hintsOf returns the text of a hint: the arguments of WithDo, and fields with the name Fix or Do.
func hintsOf(n ast.Node) []string {
	var hint []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "WithDo" {
			hint = n.Args
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Fix" || key.Name == "Do") {
			hint = []ast.Expr{n.Value}
		}
	}
	var out []string
	for _, e := range hint {
		ast.Inspect(e, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, text)
				}
			}
			return true
		})
	}
	if len(out) == 0 {
		return nil
	}
	return []string{strings.Join(out, " ")}
}
