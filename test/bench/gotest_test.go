package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tested is the outcome of tests of another package.
type tested struct {
	passed map[string]bool
	// attributes are the values that tests state with [testing.T.Attr], by TEST/NAME.
	attributes map[string]string
	took       time.Duration
	noise      float64
}

// runTests runs tests of another package in a process of its own. They are compiled before the time is measured. A
// failure is no error: the test is not among those that passed.
func runTests(b *testing.B, pkg string, tests, env []string) tested {
	b.Helper()
	program := filepath.Join(b.TempDir(), "go.test")
	compile := exec.CommandContext(b.Context(), "go", "test", "-c", "-o", program, "./"+pkg)
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		b.Fatalf("go test -c ./%s: %v\n%s", pkg, err, out)
	}
	cmd := exec.CommandContext(b.Context(), program, "-test.v", "-test.timeout", "30m", "-test.run", patternOf(tests))
	cmd.Dir, cmd.Env = filepath.Join(root, pkg), append(os.Environ(), env...)
	began := time.Now()
	out, noise, err := runAlone(b, cmd)
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	t := parseTests(out)
	t.took, t.noise = time.Since(began), noise
	if err != nil {
		b.Logf("%s: %v\n%s", cmd, err, out)
	}
	return t
}

// patternOf returns the pattern that selects tests, or one subtest TEST/NAME.
func patternOf(tests []string) string {
	if test, sub, ok := strings.Cut(tests[0], "/"); ok {
		return "^" + test + "$/^" + sub + "$"
	}
	return "^(" + strings.Join(tests, "|") + ")$"
}

var (
	passLine = regexp.MustCompile(`^\s*--- PASS: (\S+) `)
	attrLine = regexp.MustCompile(`^\s*=== ATTR +(\S+) (\S+) (.*)$`)
)

// parseTests parses the output of tests with -test.v.
func parseTests(out []byte) tested {
	t := tested{passed: map[string]bool{}, attributes: map[string]string{}}
	for line := range bytes.Lines(out) {
		line = bytes.TrimRight(line, "\r\n")
		if m := passLine.FindSubmatch(line); m != nil {
			t.passed[string(m[1])] = true
		}
		if m := attrLine.FindSubmatch(line); m != nil {
			t.attributes[string(m[1])+"/"+string(m[2])] = string(m[3])
		}
	}
	return t
}

func TestTestOutputIsParsed(t *testing.T) {
	out := "=== RUN   TestA\n=== ATTR  TestA size 12 KB\n--- PASS: TestA (0.1s)\n=== RUN   TestB\n    --- PASS: TestB/x (0.00s)\n--- FAIL: TestB (0.00s)\n--- SKIP: TestC (0.00s)\nFAIL\n"
	got := parseTests([]byte(out))
	if got := fmt.Sprint(got.passed, got.attributes); got != "map[TestA:true TestB/x:true] map[TestA/size:12 KB]" {
		t.Errorf("got %s", got)
	}
}
