//go:build unix

package up_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// asProcess is the first argument of this test binary when a test runs it as the
// process of a control plane: asProcess DIR PORT REGISTRYPORT.
const asProcess = "control-plane-of-a-test"

// timeoutVariable bounds the start of such a process.
const timeoutVariable = "XPKG_TEST_START_TIMEOUT"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == asProcess {
		os.Exit(runProcess(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

// runProcess does the same as "xpkg up", and prints the state when it is ready.
func runProcess(dir, port, registryPort string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := up.Options{Dir: dir, Version: "test"}
	o.Port, _ = strconv.Atoi(port)
	o.RegistryPort, _ = strconv.Atoi(registryPort)
	o.StartTimeout, _ = time.ParseDuration(os.Getenv(timeoutVariable))
	o.Progress = func(e up.Event) {
		if e.State != nil {
			_ = json.NewEncoder(os.Stdout).Encode(e.State)
		}
	}
	if err := up.Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return errcode.From(err).Code.Class.Exit
	}
	return 0
}

// noTests are arguments with which this test binary runs no test. Without them, a
// Detach that should have failed would run all tests again, and so on.
var noTests = []string{"-test.run=^$"}

func arguments(dir string, port, registryPort int) []string {
	return []string{asProcess, dir, strconv.Itoa(port), strconv.Itoa(registryPort)}
}

// needControlPlane skips the test where there is no real control plane, and makes
// this package find it: the test binary lies in a folder of its own.
func needControlPlane(t *testing.T) {
	t.Helper()
	t.Setenv(child.Variable, cluster.Program(t))
}

// limit is for a machine that is busy with other tests.
const limit = 2 * time.Minute

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// A running control plane in this process.
type running struct {
	up.State
	stop func() error
}

// start runs a control plane in this process until the test ends or stop is called.
func start(t *testing.T, o up.Options) running {
	t.Helper()
	ctx, cancel := context.WithCancel(limited(t))
	ready, ended := make(chan up.State, 1), make(chan error, 1)
	progress := o.Progress
	o.Progress = func(e up.Event) {
		if e.State != nil {
			ready <- *e.State
		}
		if progress != nil {
			progress(e)
		}
	}
	go func() { ended <- up.Run(ctx, o) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case state := <-ready:
		return running{state, stop}
	case err := <-ended:
		stopped = true
		t.Fatalf("did not start: %v", err)
	}
	return running{}
}

// startProcess runs a control plane in a process of its own.
func startProcess(t *testing.T, dir string) (*exec.Cmd, up.State) {
	t.Helper()
	cmd := exec.CommandContext(limited(t), os.Args[0], arguments(dir, 0, 0)...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the process did not get ready: %v, %v", err, cmd.Wait())
	}
	var state up.State
	if err := json.Unmarshal(line, &state); err != nil {
		t.Fatal(err)
	}
	return cmd, state
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
