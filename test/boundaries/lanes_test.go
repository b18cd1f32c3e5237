package boundaries_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// fullTest is a test of the full lane, with the tests that it names.
	fullTest = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\tlane\.Full\(t(.*)\)$`)
	bounding = regexp.MustCompile(`"([^"]+)\.(Test\w+)"`)
)

// TestEachPromiseHasATestInTheFirstLane proves that a test of the full lane names tests that exist and that run in the
// first lane.
func TestEachPromiseHasATestInTheFirstLane(t *testing.T) {
	exists, full := map[string]bool{}, map[string][]string{}
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root(t), filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		for _, m := range testFunc.FindAllStringSubmatch(string(source), -1) {
			exists[folder+"."+m[1]] = true
		}
		for _, m := range fullTest.FindAllStringSubmatch(string(source), -1) {
			full[folder+"."+m[1]] = []string{}
			for _, b := range bounding.FindAllStringSubmatch(m[2], -1) {
				full[folder+"."+m[1]] = append(full[folder+"."+m[1]], b[1]+"."+b[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(full) < 20 {
		t.Errorf("%d tests of the full lane were found: the test looks in the wrong place", len(full))
	}
	for name, bounded := range full {
		if len(bounded) == 0 {
			t.Errorf("%s names no test of the first lane", name)
		}
		for _, b := range bounded {
			if _, isFull := full[b]; isFull || !exists[b] {
				t.Errorf("%s names %s, which is no test of the first lane", name, b)
			}
		}
	}
}

// staleWrite matches a test that fails if an object that it writes has changed since it was read.
var staleWrite = regexp.MustCompile(`if err := [\w.]+\.Client\.Update\([^\n]*\); err != nil \{\n\s*t\.Fatal\(err\)`)

// A manager writes to the objects of a test at any time, so tests read them again when a write conflicts,
// as env.Update does.
func TestTestsBesideAManagerWriteFreshObjects(t *testing.T) {
	for _, dir := range []string{"internal/controller", "internal/cli", "test"} {
		err := filepath.WalkDir(filepath.Join(root(t), dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if stale := staleWrite.Find(text); stale != nil {
				t.Errorf("%s writes an object that may be stale, use env.Update: %s", path, stale)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The API server reads roles some time after they are written, so tests that act as another user grant its permissions
// with env.Grant, or wait themselves.
func TestTestsWaitForThePermissionsOfTheirUsers(t *testing.T) {
	err := filepath.WalkDir(root(t), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		has := func(part string) bool { return strings.Contains(string(text), part) }
		if has("&rbacv1.ClusterRoleBinding{") && (has(".Impersonate") || has("env.AsUser")) && !has("AccessReview") {
			t.Errorf("%s grants a user permissions and does not wait for them, use env.Grant", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
