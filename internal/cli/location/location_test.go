package location

import (
	"errors"
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
	for text, code := range map[string]string{"oci:": terminal.ErrUsage.Name, "a b:c": oci.ErrInvalidReference.Name, "localhost:5000/a/b": oci.ErrInvalidReference.Name} {
		if _, err := Parse(text); !errors.Is(err, terminal.ErrUsage) && !errors.Is(err, oci.ErrInvalidReference) {
			t.Errorf("%q gives %v, want %s", text, err, code)
		}
	}
}
