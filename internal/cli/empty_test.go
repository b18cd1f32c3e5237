package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// outcome runs a command in an empty folder, and returns its exit code and its messages.
func outcome(t *testing.T, args ...string) (code int, messages string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), append([]string{"xpkg"}, args...), &terminal.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return code, errs.String()
}

// An unset variable of a shell selects nothing by accident: every command refuses an empty argument, and an empty path
// or address.
func TestEmptyArgumentsAreRefused(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(args []string) {
		if code, messages := outcome(t, args...); code != terminal.ErrUsage.Class.Exit ||
			!strings.Contains(messages, " is empty\n") {
			t.Errorf("xpkg %q: exit code %d: %s", args, code, messages)
		}
	}
	checked := 0
	for _, command := range parser.Model.Leaves(true) {
		words := strings.Fields(wordsOf(command))
		if len(command.Positional) > 0 {
			refused(append(words, ""))
			checked++
		}
		for _, f := range command.Flags {
			if needsValue(command, "--"+f.Name) {
				refused(append(words, "--"+f.Name, ""))
				refused(append(words, "--"+f.Name+"="))
				checked++
			}
		}
	}
	if checked < 60 {
		t.Errorf("%d arguments and flags were checked", checked)
	}
}

// A folder or an unreadable file in place of an argument has an error of its own in every command.
func TestFoldersAsArgumentsHaveAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, variable := range []string{"HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XPKG_DATA_DIR", "DOCKER_CONFIG"} {
		t.Setenv(variable, filepath.Join(t.TempDir(), "none"))
	}
	folder := t.TempDir()
	t.Setenv("KUBECONFIG", folder)
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, command := range parser.Model.Leaves(true) {
		args := strings.Fields(wordsOf(command))
		for _, p := range command.Positional {
			if !p.Tag.Optional || len(command.Positional) == 1 {
				args = append(args, folder)
			}
		}
		if len(command.Positional) == 0 {
			continue
		}
		checked++
		code, messages := outcome(t, args...)
		if code == 1 || strings.Contains(messages, "Go value") ||
			code != 0 && code != 4 && !strings.HasPrefix(messages, "error: ") && !strings.Contains(messages, "\nerror: ") {
			t.Errorf("xpkg %q: exit code %d: %s", args, code, messages)
		}
	}
	if checked < 20 {
		t.Errorf("%d commands were checked", checked)
	}
}

// The error of a file that is no kubeconfig names the file, and no types of Go.
func TestKubeconfigErrors(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("hostname\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		text:   "error: Kubeconfig: " + text + " is not a kubeconfig\n",
		folder: "error: Kubeconfig: cannot read the kubeconfig " + folder + ": is a directory\n",
	} {
		for _, how := range []string{"flag", "variable"} {
			args := []string{"list"}
			if how == "flag" {
				args = append(args, "--kubeconfig", file)
			} else {
				t.Setenv("KUBECONFIG", file)
			}
			if code, messages := outcome(t, args...); code != 3 || !strings.HasPrefix(messages, want) {
				t.Errorf("%s of %s: exit code %d: %s", how, file, code, messages)
			}
		}
	}
}

// A package that is refused creates no package cache.
func TestRefusedPackagesCreateNoPackageCache(t *testing.T) {
	t.Chdir(t.TempDir())
	built := "boats.xpkg"
	for name, text := range map[string]string{
		"crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: boats\n",
		"text.xpkg":       "no archive",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, messages := outcome(t, "build", "-o", built); code != 0 {
		t.Fatal(messages)
	}
	cache := filepath.Join("new", "cache")
	for _, args := range [][]string{{"missing.xpkg"}, {"text.xpkg"}, {"oci:."}, {"-", "--as", "boats"}, {"-"}, {
		built, "--as", "not a name",
	}} {
		if code, messages := outcome(t, append([]string{"cache", "add", "--cache-dir", cache}, args...)...); code == 0 ||
			strings.Contains(messages, "error: Unknown: ") {
			t.Errorf("xpkg cache add %q: exit code %d: %s", args, code, messages)
		}
		if _, err := os.Stat("new"); !os.IsNotExist(err) {
			t.Fatalf("xpkg cache add %q left the folder of the cache: %v", args, err)
		}
	}
	if code, messages := outcome(t, "cache", "add", "--cache-dir", cache, built); code != 0 {
		t.Error(messages)
	}
}

// The files of `xpkg init` can be built, linted and installed with the name and the module that it accepts.
func TestInitRefusesWhatCannotBeInstalled(t *testing.T) {
	t.Chdir(t.TempDir())
	long := strings.Repeat("a", 64)
	for line, accepted := range map[string]bool{
		"provider a.b.c": false, "function a.b.c": false, "configuration d.e.f": true,
		"provider " + long: false, "configuration " + long: false, "provider " + long[1:]: true,
		"function std --module std": false, "function cmd --module cmd/x": false,
		"function up --module example.org/../x":   false,
		"function hidden --module example.org/.x": false, "provider vendored --module example.org/vendor/x": false,
		"function short --module short": true, "provider boats --module github.com/acme/boats/v2": true,
	} {
		args := strings.Fields("init " + line)
		code, messages := outcome(t, args...)
		if !accepted {
			if _, err := os.Stat(args[2]); code != terminal.ErrUsage.Class.Exit || !os.IsNotExist(err) {
				t.Errorf("xpkg init %s: exit code %d: %s", line, code, messages)
			}
			continue
		}
		if code != 0 {
			t.Errorf("xpkg init %s: exit code %d: %s", line, code, messages)
			continue
		}
		folder := filepath.Join(args[2], "package")
		if args[1] == "configuration" {
			folder = args[2]
		}
		if code, messages := outcome(t, "lint", "--strict", folder); code != 0 {
			t.Errorf("xpkg init %s: lint ends with %d: %s", line, code, messages)
		}
	}
}
