package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/up"
)

// TestDevDeploysEachContentOnce checks the commands that deployments run, and that a failed build runs no other command.
func TestDevDeploysEachContentOnce(t *testing.T) {
	var commands []string
	var messages bytes.Buffer
	digest, broken := strings.Repeat("a", 64), error(nil)
	following := make(chan struct{}, 1)
	d := &deployment{
		DevCmd: &DevCmd{Folder: "package", EmbedGoProgram: "cmd/boats", Repository: "dev/boats", Wait: time.Minute}, messages: &messages,
		state: up.State{Registry: "127.0.0.1:15000", DataDir: "plane", Kubeconfig: "plane/admin.conf"}, file: "boats.xpkg", object: "provider/dev-boats", hasLog: true,
		run: func(ctx context.Context, out io.Writer, args ...string) error {
			if args[0] == "logs" {
				following <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}
			commands = append(commands, strings.Join(args, " "))
			if args[0] == "build" && broken == nil {
				fmt.Fprintf(out, "boats.xpkg: Provider boats with 1 object, sha256:%s\n", digest)
			}
			return broken
		},
	}
	deploy := func(want error) {
		t.Helper()
		if err := d.deploy(t.Context()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	const build = "build -f package -o boats.xpkg --embed-go-program cmd/boats"
	others := func(digit string) []string {
		ref := "127.0.0.1:15000/dev/boats:v0.0.0-dev.x" + strings.Repeat(digit, 12)
		return []string{build, "push -f boats.xpkg " + ref + " --data-dir plane", "update --install " + ref + " --yes --wait 1m0s --kubeconfig plane/admin.conf"}
	}
	deploy(nil)
	<-following
	deploy(nil)
	want := append(others("a"), build)
	broken = errors.New("broken")
	deploy(broken)
	want = append(want, build)
	broken, digest = nil, strings.Repeat("b", 64)
	deploy(nil)
	<-following
	d.unfollow()
	if diff := cmp.Diff(append(want, others("b")...), commands); diff != "" {
		t.Error(diff)
	}
	if messages.String() != "the content of the package is unchanged\n" {
		t.Errorf("got %q", messages.String())
	}
}

func TestDevWatchesTheModuleOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "cmd", "boats")
	if err := os.MkdirAll(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module boats\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &DevCmd{Folder: filepath.Join(dir, "package"), EmbedGoProgram: program, Watch: []string{filepath.Join(dir, "package")}}
	if diff := cmp.Diff([]string{dir, filepath.Join(dir, "package")}, c.watched()); diff != "" {
		t.Error(diff)
	}
}

// A package that was refused is not installed, and one that does not become healthy in time is.
func TestDevKnowsWhetherThePackageIsInstalled(t *testing.T) {
	for list, want := range map[string]bool{"provider.pkg.crossplane.io/other\n": false, "provider.pkg.crossplane.io/dev-boats\nprovider.pkg.crossplane.io/other\n": true} {
		failed := errors.New("it does not become healthy")
		d := &deployment{
			DevCmd: &DevCmd{Folder: "package", Repository: "dev/boats"}, messages: &bytes.Buffer{}, object: "provider/dev-boats",
			run: func(_ context.Context, out io.Writer, args ...string) error {
				switch args[0] {
				case "build":
					fmt.Fprintf(out, "boats.xpkg: Provider boats with 1 object, sha256:%s\n", strings.Repeat("a", 64))
				case "update":
					return failed
				case "list":
					fmt.Fprint(out, list)
				}
				return nil
			},
		}
		if err := d.deploy(t.Context()); !errors.Is(err, failed) || d.installed != want {
			t.Errorf("with the packages %q: installed is %t (%v)", list, d.installed, err)
		}
	}
}
