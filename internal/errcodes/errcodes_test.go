package errcodes_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/testing/gosource"
)

// TestEveryDeclaredCodeIsListedOnce compares the listed codes with the codes that
// the source declares, so that a code missing from a Codes function is noticed.
func TestEveryDeclaredCodeIsListedOnce(t *testing.T) {
	listed := map[string]int{}
	for _, c := range append(errcodes.All(), cli.Codes()...) {
		listed[c.Name]++
	}
	for name, times := range listed {
		if times > 1 {
			t.Errorf("code %s is listed %d times", name, times)
		}
	}
	for _, name := range declaredCodes(t) {
		if listed[name] == 0 {
			t.Errorf("code %s is declared, but no Codes function lists it", name)
		}
	}
}

// declaredCodes returns the names in all composite literals of errcode.Code that
// package-level variables of this module hold.
func declaredCodes(t *testing.T) []string {
	t.Helper()
	var names []string
	gosource.Each(t, filepath.Join("..", ".."), func(_ *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				ast.Inspect(g, func(n ast.Node) bool {
					if lit, ok := n.(*ast.CompositeLit); ok {
						names = append(names, codeName(lit)...)
					}
					return true
				})
			}
		}
	})
	if len(names) < 100 {
		t.Fatalf("found only %d declared codes", len(names))
	}
	return names
}

// codeName returns the name in a literal of errcode.Code, and nothing for any
// other literal.
func codeName(lit *ast.CompositeLit) []string {
	switch typ := lit.Type.(type) {
	case *ast.SelectorExpr:
		if x, ok := typ.X.(*ast.Ident); !ok || x.Name != "errcode" || typ.Sel.Name != "Code" {
			return nil
		}
	case *ast.Ident:
		if typ.Name != "Code" {
			return nil
		}
	default:
		return nil
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Name" {
				if value, ok := kv.Value.(*ast.BasicLit); ok {
					return []string{strings.Trim(value.Value, `"`)}
				}
			}
		}
	}
	return nil
}
