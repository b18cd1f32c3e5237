package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// command has one flag of each sort.
type command struct {
	CAFile   []string `name:"ca-file" placeholder:"[HOST=]FILE" config:""`
	Cache    string   `placeholder:"DIR" config:""`
	Insecure []string `placeholder:"HOST" config:""`
	Limit    int64    `config:""`
	Quiet    bool     `config:""`
	Color    string   `enum:"auto,never" default:"auto" config:""`
	Lock     string
}

func parse(t *testing.T, f File, args ...string) (command, error) {
	t.Helper()
	var c command
	parser, err := kong.New(&c, kong.Resolvers(f))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return c, err
}

// TestPrecedence proves that a flag precedes its variable, a variable the file, and the file the default.
func TestPrecedence(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	f := File{Path: "/etc/xpkg/config.yaml", Values: map[string]any{
		"ca-file": []any{"ca.pem", "registry.example.com=/abs.pem", "~/mine.pem"}, "cache": "packages",
		"insecure": []any{"a:1", "b:2"},
		"limit":    int64(3), "quiet": true, "color": "never", "lock": "not configurable",
	}}
	got, err := parse(t, f)
	want := command{
		CAFile:   []string{"/etc/xpkg/ca.pem", "registry.example.com=/abs.pem", "/home/ann/mine.pem"},
		Cache:    "/etc/xpkg/packages",
		Insecure: []string{"a:1", "b:2"}, Limit: 3, Quiet: true, Color: "never",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the file: %v\n%s", err, diff)
	}
	t.Setenv("XPKG_INSECURE", "c:3,d:4")
	t.Setenv("XPKG_COLOR", "auto")
	t.Setenv("XPKG_CACHE", "relative")
	t.Setenv("XPKG_LIMIT", "")
	want.Insecure, want.Color, want.Cache = []string{"c:3", "d:4"}, "auto", "relative"
	if got, err = parse(t, f); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("variables: %v\n%s", err, cmp.Diff(want, got))
	}
	want.Insecure, want.Limit = []string{"e:5"}, 9
	if got, err = parse(t, f, "--insecure", "e:5", "--limit", "9"); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("flags: %v\n%s", err, cmp.Diff(want, got))
	}
	f.Values["color"] = "purple"
	t.Setenv("XPKG_COLOR", "")
	if _, err = parse(t, f); err == nil {
		t.Error("an invalid value is accepted")
	}
}

// TestInvalidFiles proves that a file with a mistake is an error with its path, and that only a named file must exist.
func TestInvalidFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv(Variable, path)
	if _, err := Read(t.Context()); !errors.Is(err, ErrInvalid) {
		t.Errorf("a missing file: %v", err)
	}
	for name, content := range map[string]string{
		"duplicate": "color: never\ncolor: auto\n", "nested": "insecure: {a: b}\n", "deep": "insecure: [[a]]\n",
		"scalar": "word\n",
		"null":   "color: null\n", "large": "a: " + strings.Repeat("x", maxSize) + "\n", "yaml": "a: [\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context()); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := File{Path: path, Values: map[string]any{
		"insecur": "a",
	}}.Check(map[string]*kong.Flag{"insecure": nil, "color": nil})
	if !errors.Is(err, ErrInvalid) || !strings.HasPrefix(errcode.From(err).Do, "Did you mean insecure?") {
		t.Errorf("an unknown key: %v", err)
	}
	t.Setenv(Variable, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if f, err := Read(t.Context()); err != nil || f.Values != nil {
		t.Errorf("no file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("insecure: [a, b]\ncolor: never\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		values, err := Parse(raw)
		if err != nil && values != nil {
			t.Errorf("%q: values with the error %v", raw, err)
		}
		for _, v := range values {
			_ = Text(v)
		}
	})
}
