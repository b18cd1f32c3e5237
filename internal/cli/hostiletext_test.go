package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// Commands print no character that acts on a terminal, whatever the names on their command line contain: they
// can come from a script or from a copied line.
//
// hardening: E4, L1
func TestHostileArgumentsAreHarmlessOnTerminals(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	const name = "a\x1b[31m\u202eb\u009b2J"
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file, []byte("a: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{name}, {"list", "-o", name}, {"list", "--kubeconfig", file}, {"list", "--context", name},
		{"install", name, "a.test/b:v1"},
		{"install", "provider", "a.test/" + name}, {"install", "--lock", file},
		{"uninstall", "provider", name, "--kubeconfig", file},
		{"update", name, name, "--kubeconfig", file}, {"apply", file}, {"apply", dir}, {"tree", "--lock", file},
		{"why", name, "--lock", file},
		{"build", "-f", dir}, {"build", "-f", dir, "-o", dir}, {"lint", dir}, {"validate", file, "--package", dir},
		{"validate", file, "-o", "json"}, {"lint", file}, {"lint", name}, {"lint", file, "-o", "json"},
		{"push", "-f", file, "a.test/b:v1"}, {"push", "-f", name, "a.test/" + name}, {"append", file, "-d", dir},
		{"append", name, "--extensions-root", dir},
		{"pull", "a.test/" + name}, {"copy", file, name}, {"copy", name, "oci:" + dir}, {"inspect", file},
		{"inspect", "oci:" + dir}, {"inspect", "oci:" + dir + ":" + name},
		{"inspect", name, "-o", "json"}, {"extract", file}, {"diff", file, name}, {"login", name}, {"logout", name},
		{"resolve", dir}, {"resolve", "a.test/" + name}, {"resolve", "a.test/b@" + name}, {"resolve", "--lock", file},
		{"bundle", "save", file, "-o", dir}, {"bundle", "load", file, name}, {"bundle", "load", dir, "a.test"},
		{"cache", "ls", "--cache-dir", dir}, {"cache", "ls", "--cache-dir", filepath.Join(dir, "new")},
		{"cache", "add", file, "--as", name},
		{"cache", "verify", "--cache-dir", filepath.Join(dir, "new")},
		{"cache", "prune", "--cache-dir", filepath.Join(dir, "new")},
		{"status", "--data-dir", filepath.Join(dir, "none")}, {"down", "--data-dir", filepath.Join(dir, "none")},
		{"logs", name, "--data-dir", filepath.Join(dir, "none"), "--kubeconfig", file},
		{"up", "--data-dir", dir, "--package-runtime", name}, {"manager", "--kubeconfig", file},
		{"manager", "--package-runtime", name}, {"bootstrap", "--namespace", name},
		{"bootstrap", "--image", name}, {"bootstrap", "--package-group", name}, {"version", name},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args[:min(len(args), 2)], " "), name, "NAME"), func(t *testing.T) {
			var out, errs bytes.Buffer
			code := cli.Main(t.Context(), append([]string{"xpkg"}, args...), &cli.Env{
				Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			})
			if code == 0 && out.Len()+errs.Len() == 0 {
				t.Errorf("%q prints nothing", args)
			}
			for _, text := range []string{out.String(), errs.String()} {
				if text != terminal.SafeText(text) {
					t.Errorf("%q exits with %d and prints %q", args, code, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
				}
			}
		})
	}
}
