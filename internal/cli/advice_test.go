package cli

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/gosource"
	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// inserted matches a value that a program or a user inserts: a verb of a format, or a word in capitals.
var inserted = regexp.MustCompile(`%(?:\[\d+\])?[a-z]|\b(?:PACKAGE|KIND|SHELL)\b`)

// parseAdvice parses a command with one of several values for those that are inserted.
func parseAdvice(t *testing.T, command string) (err error) {
	t.Helper()
	for _, value := range []string{"provider/x", "provider", "ghcr.io/x/y:v1", "bash", "yank", "1"} {
		if err = parseCommand(t, shellWords(inserted.ReplaceAllString(command, value))); err == nil || isIncomplete(err) {
			return err
		}
	}
	return err
}

// TestAdvisedCommandsParse checks that the commands in messages exist with the arguments and flags that the messages
// name.
func TestAdvisedCommandsParse(t *testing.T) {
	race.SkipSequential(t)
	checked := 0
	gosource.Each(t, filepath.Join("..", ".."), func(files *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range inlineCommand.FindAllStringSubmatch(text, -1) {
				if strings.HasPrefix(m[1], "%s") {
					continue
				}
				checked++
				err := parseAdvice(t, m[1])
				if strings.HasSuffix(m[1], " --help") {
					err = nil
				}
				isName := !strings.Contains(m[1], " --") // Text often names a command without its arguments.
				if err != nil && !(isIncomplete(err) && (isName || !strings.HasPrefix(err.Error(), "missing flags"))) {
					t.Errorf("%s: xpkg %s: %v", files.Position(lit.Pos()), m[1], err)
				}
			}
			return true
		})
	})
	if checked < 300 {
		t.Errorf("%d commands were found", checked)
	}
}
