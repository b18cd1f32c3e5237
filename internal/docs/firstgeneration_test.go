package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test that a document names: the folder of its package and its name.
var namedTest = regexp.MustCompile(
	"`((?:pkg|internal|test)/[\\w/]+)\\.((?:Test|Fuzz)\\w+)`|`((?:pkg|internal|test)/[\\w/]+\\.txtar)`",
)

// The tests that docs/reference/first-generation.md names exist, and each row has a test or a reason.
func TestFirstGenerationNamesExistingTests(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "first-generation.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "| promise" {
			continue
		}
		rows++
		if len(cells) != 2 || len(cells[1]) < 10 {
			t.Errorf("the row has neither a test nor a reason: %s", line)
		}
		for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
			if !testExists(t, root, m[1], m[2], m[3]) {
				t.Errorf("%s does not exist", m[0])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows", rows)
	}
}

// testExists reports whether a folder has a test function, or whether a script exists.
func testExists(t *testing.T, root, dir, name, script string) bool {
	t.Helper()
	if script != "" {
		_, err := os.Stat(filepath.Join(root, script))
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
