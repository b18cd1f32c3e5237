package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// TestPipesAreNoFolders proves that a named pipe in the place of a folder is refused at once and
// not waited for.
func TestPipesAreNoFolders(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	example := filepath.Join("..", "..", "examples", "configuration-hello")
	for _, args := range [][]string{
		{"build", "-f", fifo, "-o", "-"}, {"build", "-f", example, "-e", fifo, "-o", "-"},
		{"append", "x", "--extensions-root", fifo},
		{"inspect", "oci:" + fifo + ":v1"}, {"bundle", "load", fifo, "127.0.0.1:1/a"},
		{"bundle", "save", "127.0.0.1:1/a/b:v1", "-o", fifo}, {"copy", "x", "oci:" + fifo},
		{"cache", "ls", "--cache-dir", fifo},
		{"up", "--data-dir", fifo}, {"status", "--data-dir", fifo},
	} {
		var errs bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &errs}
		if code := cli.Main(t.Context(), append([]string{"xpkg"}, args...), env); code == 0 ||
			strings.Contains(errs.String(), "error: Unknown: ") {
			t.Errorf("xpkg %s: exit code %d\n%s", strings.Join(args, " "), code, errs.String())
		}
	}
}

// TestInterruptedWhileReading proves that a signal ends every command that waits for its input: a
// named pipe without a writer, or standard input without data.
//
// hardening: L3
func TestInterruptedWhileReading(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join("..", "..", "go.mod"))
	fifo, yaml := filepath.Join(t.TempDir(), "fifo"), filepath.Join(t.TempDir(), "fifo.yaml")
	for _, name := range []string{fifo, yaml} {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	example := filepath.Join("..", "..", "examples", "configuration-hello")
	for _, args := range [][]string{
		{"apply", fifo}, {"apply", "-"},
		{"install", "--lock", fifo}, {"tree", "--lock", "-"}, {"why", "x", "--lock", fifo}, {"outdated", "--lock", "-"},
		{"bundle", "save", fifo, "-o", filepath.Join(t.TempDir(), "x.tar")}, {"resolve", "a.test/b:v1", "--image-config", fifo},
		{"lint", yaml}, {"lint", fifo}, {"lint", "-"}, {"validate", fifo}, {"validate", "-"},
		{"validate", yaml, "--lock", fifo}, {"inspect", fifo}, {"inspect", "oci:" + fifo}, {"extract", "-"},
		{"copy", fifo, "-"},
		{"push", "-f", fifo, "127.0.0.1:1/a/b:v1"}, {"login", "127.0.0.1:1", "-u", "a", "--password-stdin"},
		{"build", "-f", example, "--embed-runtime-image-tarball", fifo, "-o", "-"}, {"build", "-f", example, "-o", fifo},
		{"pull", "127.0.0.1:1/a/b:v1", "--ca-file", fifo}, {"push", "-f", fifo, "127.0.0.1:1/a/b:v1", "--ca-file", fifo},
		{"copy", "127.0.0.1:1/a/b:v1", "-", "--ca-file", "127.0.0.1:1=" + fifo},
		{"resolve", "127.0.0.1:1/a/b:v1", "--ca-file", fifo},
		{"login", "127.0.0.1:1", "-u", "a", "--password-stdin", "--ca-file", fifo},
		{"cache", "add", fifo, "--as", "a"}, {"cache", "add", "-", "--as", "a"},
		{"list", "--kubeconfig", fifo}, {"install", "provider", "127.0.0.1:1/a/b:v1", "--kubeconfig", fifo},
		{"manager", "--kubeconfig", fifo}, {"bootstrap", "--apply", "--kubeconfig", fifo},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var errs bytes.Buffer
		code := make(chan int, 1)
		go func() {
			env := &cli.Env{Stdin: in, Stdout: &bytes.Buffer{}, Stderr: &errs}
			code <- cli.Main(ctx, append([]string{"xpkg"}, args...), env)
		}()
		cancel()
		if got := <-code; got != 130 || !strings.Contains(errs.String(), "error: Interrupted: ") {
			t.Errorf("xpkg %s: exit code %d\n%s", strings.Join(args, " "), got, errs.String())
		}
	}
}

// A failingWriter fails every write with an error, after a call of before.
type failingWriter struct {
	before func()
	err    error
}

func (w failingWriter) Write([]byte) (int, error) {
	w.before()
	return 0, w.err
}

// A closed terminal fails the writes of a command and sends it a signal. Only both together end a command in order:
// every other output that cannot be written is an error, also of an interrupted command.
func TestOutputToAClosedTerminalIsNoError(t *testing.T) {
	for _, c := range []struct {
		name      string
		interrupt bool
		err       error
		want      int
	}{
		{"closed terminal", true, syscall.EIO, 0},
		{"broken device", false, syscall.EIO, archive.ErrCannotWrite.Class.Exit},
		{"interrupted on a full device", true, syscall.ENOSPC, archive.ErrCannotWrite.Class.Exit},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			before := func() {}
			if c.interrupt {
				before = cancel
			}
			out := failingWriter{before, &os.PathError{Op: "write", Path: "/dev/stdout", Err: c.err}}
			var errs bytes.Buffer
			code := cli.Main(ctx, []string{"xpkg", "version"}, &cli.Env{
				Stdin: strings.NewReader(""), Stdout: out, Stderr: &errs,
			})
			if code != c.want || (code == 0) != (errs.Len() == 0) {
				t.Errorf("exit code %d, want %d, with the message %q", code, c.want, errs.String())
			}
		})
	}
}
