package location

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func TestParsePlace(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for text, want := range map[string]struct {
		kind Kind
		text string
	}{
		"-":                               {Stream, "-"},
		"oci:dir":                         {Layout, "oci:dir"},
		"oci:/a/b:c":                      {Layout, "oci:/a/b:c"},
		"oci:a:b/":                        {Layout, "oci:a:b/"},
		"oci:dir@sha256:" + hex:           {Layout, "oci:dir@sha256:" + hex},
		"hello.xpkg":                      {File, "hello.xpkg"},
		"dir/hello":                       {File, "dir/hello"},
		"./a:b":                           {File, "./a:b"},
		"../a@b":                          {File, "../a@b"},
		"/abs/a:b":                        {File, "/abs/a:b"},
		"ghcr.io/org/hello":               {File, "ghcr.io/org/hello"},
		"ghcr.io/org/hello:v1":            {Registry, "ghcr.io/org/hello:v1"},
		"crossplane/provider-gcp:v0.14.0": {Registry, "docker.io/crossplane/provider-gcp:v0.14.0"},
		"localhost:5000/a/b:c":            {Registry, "localhost:5000/a/b:c"},
	} {
		got, err := Parse(text)
		if err != nil || got.Kind != want.kind || got.String() != want.text {
			t.Errorf("%q is place %d, %s (%v), want %d, %s", text, got.Kind, got, err, want.kind, want.text)
		}
	}
	for text, code := range map[string]string{
		"oci:": terminal.ErrUsage.Name, "a b:c": oci.ErrInvalidReference.Name,
		"localhost:5000/a/b": oci.ErrInvalidReference.Name, "oci://ghcr.io/org/hello:v1": oci.ErrInvalidReference.Name,
	} {
		if _, err := Parse(text); !errors.Is(err, terminal.ErrUsage) && !errors.Is(err, oci.ErrInvalidReference) {
			t.Errorf("%q gives %v, want %s", text, err, code)
		}
	}
}

// The error of a reference with a scheme has the reference without it.
func TestReferencesWithAScheme(t *testing.T) {
	for _, scheme := range []string{"oci://", "docker://", "https://"} {
		if _, err := Parse(scheme + "ghcr.io/org/hello:v1"); !errors.Is(err, oci.ErrInvalidReference) ||
			!strings.Contains(err.Error(), "write ghcr.io/org/hello:v1") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// The path of an existing file is a file, also if its name has a character of references.
func TestExistingFilesAreNoReferences(t *testing.T) {
	t.Chdir(t.TempDir())
	files := []string{"a@b.xpkg", "folder/a@b.xpkg", "folder/a:v1", "localhost:5000/boats:v1"}
	for _, name := range append(files, "word:v1") {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range files {
		if got, err := Parse(name); err != nil || got.Kind != File || got.Path != name {
			t.Errorf("%q is place %d, %s (%v)", name, got.Kind, got, err)
		}
		if IsPackageFile(name) != strings.HasSuffix(name, ".xpkg") {
			t.Errorf("IsPackageFile(%q) is %t", name, IsPackageFile(name))
		}
	}
	for _, name := range []string{"word:v1", "folder/b:v1", "localhost:5000/boats:v2"} {
		if got, err := Parse(name); err == nil && got.Kind != Registry {
			t.Errorf("%q is place %d, %s", name, got.Kind, got)
		}
	}
}
