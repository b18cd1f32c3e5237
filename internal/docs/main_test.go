package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Every code has a cause and a remedy, in sentences, and a class from the table.
func TestEveryCodeIsDocumented(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Z"].*[.]$`)
	name := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	for _, c := range allCodes() {
		if !name.MatchString(c.Name) || !sentence.MatchString(c.Cause) || !sentence.MatchString(c.Fix) {
			t.Errorf("code %q: cause %q, fix %q", c.Name, c.Cause, c.Fix)
		}
		if !slices.Contains(errcode.Classes(), c.Class) {
			t.Errorf("code %s is of the class %q, which is not in the table", c.Name, c.Class.Name)
		}
	}
}

func TestReferenceIsUpToDate(t *testing.T) {
	for name, write := range pages() {
		var want bytes.Buffer
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("docs/reference/%s is not up to date: run make generate", name)
		}
	}
}
