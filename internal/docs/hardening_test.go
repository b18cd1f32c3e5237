package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Each case has a test with its mark or a reason, and each mark belongs to a case.
func TestEachHardeningCaseHasATestOrAReason(t *testing.T) {
	marks, err := hardeningMarks(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	cases := parseHardeningCases()
	const least = 144
	if len(cases) < least {
		t.Errorf("%d cases, want %d or more", len(cases), least)
	}
	known := map[string]bool{}
	for _, c := range cases {
		if known[c.id] || c.section == "" || c.text == "" {
			t.Errorf("case %q is listed twice, or has no text", c.id)
		}
		known[c.id] = true
		if len(marks[c.id]) == 0 && c.reason == "" {
			t.Errorf("case %s has no test and no reason", c.id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(marks)) {
		if !known[id] {
			t.Errorf("the mark %q of %v belongs to no case", id, marks[id])
		}
	}
}

func TestHardeningMarksAreRead(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"a/a_test.go":   "package a\n\n// TestOne does it.\n//\n// hardening: A1, B2\nfunc TestOne(t *testing.T) {}\n\nfunc TestTwo(t *testing.T) {}\n",
		"b/one.txtar":   "# hardening: A1\nexec true\n",
		"bin/x_test.go": "// hardening: Z9\nfunc TestX(t *testing.T) {}\n",

		"testdata/malformed/stream/cases.yaml": "- name: x\n  hardening: B2\n- name: y\n  hardening: \"-\"\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	marks, err := hardeningMarks(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := marks["A1"]; !slices.Equal(got, []string{"a.TestOne", "b/one.txtar"}) {
		t.Errorf("A1: %v", got)
	}
	if got := marks["B2"]; !slices.Equal(got, []string{"a.TestOne", "pkg/xpkg.TestMalformedStreams"}) {
		t.Errorf("B2: %v", got)
	}
	if len(marks) != 2 {
		t.Errorf("marks: %v", marks)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "lost_test.go"), []byte("// hardening: A1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := hardeningMarks(root); err == nil {
		t.Error("a mark without a test is accepted")
	}
}
