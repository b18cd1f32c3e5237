//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/usage"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// mainVariable is set if this test binary runs as xpkg.
const mainVariable = "XPKG_TEST_MAIN"

// peakVariable names the file for the peak memory of this test binary as xpkg. The kernel
// attributes the memory of the process that starts a command to the command too, so the
// resource usage of a child process is of no use.
const peakVariable = "XPKG_TEST_PEAK"

// runMeasured runs a command, and writes its peak memory in bytes.
func runMeasured(file string) int {
	code := cli.Main(context.Background(), os.Args, cli.System())
	used, err := usage.Of(os.Getpid())
	if err == nil {
		err = os.WriteFile(file, []byte(strconv.FormatInt(used.Peak, 10)), 0o600)
	}
	if err != nil {
		return errcode.Internal.Exit
	}
	return code
}

func TestMain(m *testing.M) {
	if file := os.Getenv(peakVariable); file != "" {
		os.Exit(runMeasured(file))
	}
	if os.Getenv(mainVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A command ends in order with each of these signals, also when its terminal is closed. With
// nohup it ignores SIGHUP.
func TestSignalsEndACommandInOrder(t *testing.T) {
	// A test that nohup started would pass the ignored signal on.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	for name, test := range map[string]struct {
		prefix []string
		signal os.Signal
		exit   int
	}{
		"Ctrl-C":          {nil, os.Interrupt, 130},
		"SIGTERM":         {nil, syscall.SIGTERM, 130},
		"closed terminal": {nil, syscall.SIGHUP, 130},
		"nohup":           {[]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, syscall.SIGHUP, errcode.Usage.Exit},
	} {
		t.Run(name, func(t *testing.T) {
			// The command waits for the content of a pipe.
			pipe := filepath.Join(t.TempDir(), "kubeconfig")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(test.prefix, os.Args[0], "list", "--kubeconfig", pipe)
			var said bytes.Buffer
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env, cmd.Stderr = append(os.Environ(), mainVariable+"=1"), &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			content, err := os.OpenFile(pipe, os.O_WRONLY, 0) // It returns when the command has opened the pipe.
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if test.exit != 130 {
				// The command continues, and finds an empty kubeconfig.
				if err := content.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != test.exit {
				t.Errorf("%v, want exit code %d: %s", err, test.exit, said.String())
			}
			_ = content.Close()
		})
	}
}
