package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	numbered = regexp.MustCompile(`(?m)^\| (\d+) \|[^|]*\|([^|]*)\|`)
	// proof is a test, as folder.Name, or the path of a script.
	proof = regexp.MustCompile("`((?:internal|pkg|test)/[a-z/]+)(?:\\.(Test[A-Za-z0-9]+)|(/[a-z-]+\\.txtar))`")
)

// The page about compatibility has a line for every edge case that it is about, each
// with a test, and every test that it names exists.
func TestCompatibilityIsProven(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, m := range numbered.FindAllStringSubmatch(string(page), -1) {
		if lines[m[1]] != "" {
			t.Errorf("number %s is there twice", m[1])
		}
		lines[m[1]] = m[2]
	}
	for _, numbers := range [][2]int{{19, 115}} {
		for n := numbers[0]; n <= numbers[1]; n++ {
			if !proof.MatchString(lines[fmt.Sprint(n)]) {
				t.Errorf("number %d has no proof", n)
			}
		}
	}
	for _, m := range proof.FindAllStringSubmatch(string(page), -1) {
		if m[3] != "" {
			if _, err := os.Stat(filepath.Join(root, m[1]+m[3])); err != nil {
				t.Errorf("%s: %v", m[0], err)
			}
			continue
		}
		if !hasTest(t, filepath.Join(root, m[1]), m[2]) {
			t.Errorf("there is no test %s in %s", m[2], m[1])
		}
	}
	// Every path in backquotes must have the form of a proof.
	if all, good := strings.Count(string(page), "`internal/")+strings.Count(string(page), "`pkg/")+
		strings.Count(string(page), "`test/"), len(proof.FindAllString(string(page), -1)); all != good {
		t.Errorf("%d of %d proofs are spelled as such", good, all)
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
