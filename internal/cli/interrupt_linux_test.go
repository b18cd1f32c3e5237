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
)

// TestInterruptedWhileReading proves that a signal ends every command that waits for its input: a
// named pipe without a writer, or standard input without data.
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
	for _, args := range [][]string{
		{"apply", fifo}, {"apply", "-"},
		{"install", "--lock", fifo}, {"tree", "--lock", "-"}, {"why", "x", "--lock", fifo}, {"outdated", "--lock", "-"},
		{"deps", "vendor", "--lock", fifo, "--to", t.TempDir()}, {"resolve", "a.test/b:v1", "--image-config", fifo},
		{"lint", yaml}, {"lint", fifo}, {"lint", "-"}, {"inspect", fifo}, {"extract", "-"}, {"copy", fifo, "-"},
		{"push", "-f", fifo, "127.0.0.1:1/a/b:v1"}, {"login", "127.0.0.1:1", "-u", "a", "--password-stdin"},
		{"build", "-f", filepath.Join("..", "..", "examples", "configuration-hello"), "--embed-runtime-image-tarball", fifo, "-o", "-"},
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
