package controlplane

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Quiet output has the addresses of the control plane, and no next commands.
func TestQuietUpPrintsAddressesOnly(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out strings.Builder
		env := &terminal.Env{Stdout: &out, Stderr: &terminal.MessageWriter{Writer: io.Discard, Quiet: quiet}}
		printReady(env, up.State{Server: "https://127.0.0.1:16443", DataDir: "plane"}, "", "Press Ctrl-C to stop it.")
		if !strings.Contains(out.String(), "  data         plane\n") {
			t.Errorf("quiet %t: no addresses in %q", quiet, out.String())
		}
		for _, text := range []string{"\nNext:\n", "xpkg login", "\n\nPress Ctrl-C to stop it.\n"} {
			if strings.Contains(out.String(), text) == quiet {
				t.Errorf("quiet %t: %q in %q", quiet, text, out.String())
			}
		}
	}
}

// The status of a control plane that starts says so, and is no success for a script that waits for it.
func TestStatusOfAControlPlaneThatStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	held, err := datadir.Open(dir, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var out strings.Builder
	status := StatusCmd{DataDirFlag: flags.DataDirFlag{DataDir: dir}}
	code := terminal.ExitCode(0)
	if err := status.Run(&terminal.Env{Context: t.Context(), Stdout: &out, Stderr: io.Discard}); !errors.As(err, &code) ||
		int(code) != errcode.Unhealthy.Exit {
		t.Errorf("got %v", err)
	}
	if want := "The control plane in " + dir + " is starting, process "; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// The command for the next start repeats the flags that change the control plane, and only those.
func TestRepeatedFlagsOfUp(t *testing.T) {
	args := strings.Fields(
		"-q up --detach -d --data-dir plane --port=0 --registry-port 1 --package-runtime None --dependency-upgrades=Upgrade --start-timeout 5m -v --namespaced",
	)
	if got, want := repeated(t, args), "--package-runtime=None --dependency-upgrades=Upgrade --namespaced"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := repeated(t, []string{"up"}); got != "" {
		t.Errorf("got %q", got)
	}
	// The next start can be in another folder.
	t.Chdir(t.TempDir())
	for _, name := range []string{"policy.yaml", "key.pem", "configmap"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	args = strings.Fields(
		"up --permission-policy policy.yaml --index-key=key.pem --with-core registry.example.com/core:v2.0.0 --permission-policy configmap/policy --index a.test/b",
	)
	want := "--permission-policy=" + filepath.Join(folder, "policy.yaml") + " --index-key=" +
		filepath.Join(folder, "key.pem") +
		" --with-core=registry.example.com/core:v2.0.0 --permission-policy=configmap/policy --index=a.test/b"
	if got := repeated(t, args); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A start without flags has those of the last one. A flag that is given again replaces all of its former values.
func TestFlagsOfTheLastStartApplyAgain(t *testing.T) {
	last := strings.Fields(
		"--package-runtime=None --index=a.test/b --index=c.test/d --crd-openapi --max-upload-size=1GiB --port=3 --gone=x",
	)
	for given, want := range map[string]string{
		"":                                       "--package-runtime=None --index=a.test/b --index=c.test/d --crd-openapi --max-upload-size=1GiB",
		"--index=e.test/f":                       "--package-runtime=None --crd-openapi --max-upload-size=1GiB",
		"--package-runtime= --crd-openapi=false": "--index=a.test/b --index=c.test/d --max-upload-size=1GiB",
	} {
		c := &UpCmd{}
		c.Index = []string{"of.the/configuration"}
		kept, err := keepFlags(flagsOf(t, c), last, strings.Fields(given))
		if got := strings.Join(kept, " "); err != nil || got != want {
			t.Errorf("%q: got %q, want %q; %v", given, got, want, err)
		}
		if given == "" && (c.PackageRuntime != "None" || !c.CRDOpenAPI || c.MaxUploadSize != 1<<30 ||
			strings.Join(c.Index, " ") != "a.test/b c.test/d" || c.Port != nil) {
			t.Errorf("the flags are %+v", c)
		}
	}
	if _, err := keepFlags(
		flagsOf(t, &UpCmd{}), []string{"--max-upload-size=many"}, nil,
	); !errors.Is(err, terminal.ErrUsage) {
		t.Errorf("a value that is not valid any more: %v", err)
	}
}

// flagsOf returns the flags of a command, which set its fields.
func flagsOf(t *testing.T, c *UpCmd) []*kong.Flag {
	t.Helper()
	parser, err := kong.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Flags
}

func repeated(t *testing.T, args []string) string {
	t.Helper()
	return strings.Join(repeatedFlags(flagsOf(t, &UpCmd{}), args), " ")
}
