package cli

import (
	"errors"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]struct {
		kind placeKind
		text string
	}{
		"-":                               {inStream, "-"},
		"oci:dir":                         {inLayout, "oci:dir"},
		"oci:/a/b:c":                      {inLayout, "oci:/a/b:c"},
		"hello.xpkg":                      {inFile, "hello.xpkg"},
		"dir/hello":                       {inFile, "dir/hello"},
		"./a:b":                           {inFile, "./a:b"},
		"../a@b":                          {inFile, "../a@b"},
		"/abs/a:b":                        {inFile, "/abs/a:b"},
		"ghcr.io/org/hello":               {inFile, "ghcr.io/org/hello"},
		"ghcr.io/org/hello:v1":            {inRegistry, "ghcr.io/org/hello:v1"},
		"crossplane/provider-gcp:v0.14.0": {inRegistry, "docker.io/crossplane/provider-gcp:v0.14.0"},
		"localhost:5000/a/b:c":            {inRegistry, "localhost:5000/a/b:c"},
	} {
		got, err := parsePlace(text)
		if err != nil || got.kind != want.kind || got.String() != want.text {
			t.Errorf("%q is place %d, %s (%v), want %d, %s", text, got.kind, got, err, want.kind, want.text)
		}
	}
	for text, code := range map[string]string{"oci:": ErrUsage.Name, "a b:c": oci.ErrInvalidReference.Name, "localhost:5000/a/b": oci.ErrInvalidReference.Name} {
		if _, err := parsePlace(text); !errors.Is(err, ErrUsage) && !errors.Is(err, oci.ErrInvalidReference) {
			t.Errorf("%q gives %v, want %s", text, err, code)
		}
	}
}
