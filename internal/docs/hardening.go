package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// hardeningCases lists the bad inputs and faults that xpkg handles: "# SECTION", or
// "ID|INPUT OR FAULT: RESULT|REASON". The reason is set for a case without a test.
//
//go:embed hardening.txt
var hardeningCases string

// hardeningCase is one bad input or fault.
type hardeningCase struct {
	section, id, text, reason string
}

func parseHardeningCases() []hardeningCase {
	var out []hardeningCase
	section := ""
	for line := range strings.Lines(hardeningCases) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "# "); ok {
			section = title
			continue
		}
		fields := append(strings.SplitN(line, "|", 3), "", "")
		out = append(out, hardeningCase{section: section, id: fields[0], text: fields[1], reason: fields[2]})
	}
	return out
}

var (
	// goMark is a line of the doc comment of a test, and scriptMark a line of a script.
	goMark     = regexp.MustCompile(`^// hardening: (.+)$`)
	scriptMark = regexp.MustCompile(`^# hardening: (.+)$`)
	// tableMark is a line of a table of malformed input.
	tableMark = regexp.MustCompile(`^  hardening: ([A-Z]\S*)$`)
	testFunc  = regexp.MustCompile(`^func ((?:Test|Fuzz)\w*)\(`)
)

// tableTests are the tests that read each table of malformed input.
var tableTests = map[string][]string{
	"testdata/malformed/image/cases.yaml": {
		"pkg/oci/archive.TestMalformedArchives", "pkg/oci/archive.TestMalformedImagesInRegistry",
	},
	"testdata/malformed/stream/cases.yaml": {"pkg/xpkg.TestMalformedStreams"},
}

// hardeningMarks returns the tests of each case, from the marks in the test files of a
// repository.
func hardeningMarks(root string) (map[string][]string, error) {
	marks := map[string][]string{}
	add := func(ids, test string) {
		for _, id := range strings.FieldsFunc(ids, func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(marks[id], test) {
				marks[id] = append(marks[id], test)
			}
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".txtar") && name != "cases.yaml":
			return nil
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return readMarks(path, filepath.ToSlash(relative), add)
	})
	for _, tests := range marks {
		slices.Sort(tests)
	}
	return marks, err
}

// readMarks passes the marks of a file to add. A mark in a Go file applies to the next
// test.
func readMarks(path, relative string, add func(ids, test string)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	pending := ""
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := goMark.FindStringSubmatch(line); m != nil {
			pending = m[1]
		} else if m := testFunc.FindStringSubmatch(line); m != nil && pending != "" {
			add(pending, filepath.ToSlash(filepath.Dir(relative))+"."+m[1])
			pending = ""
		} else if m := scriptMark.FindStringSubmatch(line); m != nil && strings.HasSuffix(path, ".txtar") {
			add(m[1], relative)
		} else if m := tableMark.FindStringSubmatch(line); m != nil {
			for _, test := range tableTests[relative] {
				add(m[1], test)
			}
		}
	}
	if pending != "" {
		return fmt.Errorf("%s: the mark %q belongs to no test", relative, pending)
	}
	return lines.Err()
}

// hardeningPage writes the table of bad inputs and faults with the tests of each.
func hardeningPage(w io.Writer) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	marks, err := hardeningMarks(root)
	if err != nil {
		return err
	}
	fmt.Fprint(w, generated, "# Bad inputs and faults\n\n",
		"What xpkg does with bad inputs and faults, and the tests that prove it. A test has the number of its case in a\n",
		"comment, `// hardening: A1`; a case without a test states the reason.\n")
	section := ""
	for _, c := range parseHardeningCases() {
		if c.section != section {
			section = c.section
			fmt.Fprintf(w, "\n## %s\n\n| case | input or fault, and result | tests |\n|---|---|---|\n", section)
		}
		proof := c.reason
		if tests := marks[c.id]; len(tests) > 0 {
			proof = strings.TrimSpace("`" + strings.Join(tests, "`, `") + "` " + c.reason)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", c.id, c.text, proof)
	}
	return nil
}

// repositoryRoot returns the folder of the go.mod file that the current folder is in.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
		dir = parent
	}
}
